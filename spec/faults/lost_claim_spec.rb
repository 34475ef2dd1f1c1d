# frozen_string_literal: true

# The database has leased the rows, and its session ends before we know of it: nobody works on them, and whatever comes
# after them in their destination would wait for their lease to end.
RSpec.describe "A claim that the database has made and we never heard of" do
  let(:patterns) { AceMQ::AMQP::Patterns }

  let(:store) { patterns::ActiveRecordOutboxStore.new(lease: 60) }

  def put_three
    3.times { |n| put("l-#{n}", to: "somewhere") }
  end

  on_each_database(:postgres, :mariadb) do
    before(:context) { make_outbox }

    before do
      empty("acemq_outbox")
      stub_const("Through", Class.new(ActiveRecord::Base) { self.abstract_class = true })
      Through.establish_connection(config.merge(host: "127.0.0.1", port: proxy.port))
      put_three
    end

    after do
      proxy.resume
      Through.remove_connection
    end

    let(:config) { AceMQ::SpecSupport::Database.config(database) }
    let(:proxy) { AceMQ::SpecSupport::Proxy.new(config[:port]).tap { |proxy| cleanups << -> { proxy.close } } }
    let(:store) { patterns::ActiveRecordOutboxStore.new(model: Through, lease: 60) }

    # From the statement on that leases.
    def hold_answers_of_the_lease
      allow_any_instance_of(patterns::Leasing).to receive(:take).and_wrap_original do |take, *arguments|
        proxy.stall(:down)
        take.call(arguments.last)
      end
    end

    %i[destination strict].each do |ordering|
      it "gives its rows back at once, with ordering: :#{ordering}" do
        store.check!
        hold_answers_of_the_lease
        claiming = Thread.new { store.claim(10, ordering: ordering) }
        claiming.report_on_exception = false
        eventually { expect(leased.size).to eq 3 }
        proxy.reset
        proxy.resume

        expect { claiming.value }.to raise_error(ActiveRecord::ActiveRecordError)
        expect(leased).to be_empty
        expect(outbox.claim(10).records.size).to eq 3
      end
    end
  end

  on_each_database(:mariadb, :sqlite) do
    before(:context) { make_outbox }

    before do
      empty("acemq_outbox")
      put_three
    end

    # Leased by one statement, read by the next.
    def between_lease_and_read
      allow(patterns::Failpoint).to receive(:reach).and_call_original
      allow(patterns::Failpoint).to receive(:reach).with(:mid_claim) do
        expect(leased.size).to eq 3
        yield
      end
    end

    it "gives its rows back when it is stopped half-way" do
      between_lease_and_read { raise "no more" }

      expect { store.claim(10) }.to raise_error("no more")
      expect(leased).to be_empty
    end

    it "leaves alone what another has taken over meanwhile" do
      between_lease_and_read do
        execute("UPDATE acemq_outbox SET locked_by = 'another' WHERE id = 'l-1'")
        raise "no more"
      end

      expect { store.claim(10) }.to raise_error("no more")
      expect(leased).to eq %w[l-1]
    end
  end
end
