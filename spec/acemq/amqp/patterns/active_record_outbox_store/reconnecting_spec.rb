# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "when its database connection dies" do
  subject(:store) { described_class.new }

  # Ends every session of the pool, from a connection beside it.
  def end_sessions
    config = AceMQ::SpecSupport::Database.config(database)
    beside = Class.new(ActiveRecord::Base) { self.abstract_class = true }
    stub_const("Beside", beside)
    beside.establish_connection(config)
    if database == :postgres
      beside.connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity " \
                                "WHERE datname = current_database() AND pid <> pg_backend_pid()")
    else
      ids = beside.connection.select_values("SELECT id FROM information_schema.processlist " \
                                            "WHERE db = DATABASE() AND id <> CONNECTION_ID()")
      ids.each { |id| beside.connection.execute("KILL #{id}") }
    end
  ensure
    beside.remove_connection
  end

  on_each_database(:postgres, :mariadb) do
    before(:context) { make_outbox }

    before do
      empty("acemq_outbox")
      add("a", "b")
    end

    it "notices nothing when that happened between its statements" do
      claim = store.claim(1)
      end_sessions
      expect(claim.settle(confirmed: ["a"]).marked).to eq 1

      end_sessions
      expect(claimed_ids).to eq ["b"]
    end

    it "works again at the next use when the thread holds the connection" do
      ActiveRecord::Base.connection.select_value("SELECT 1") # from now on this thread's own
      end_sessions
      begin
        store.claim(1)
      rescue ActiveRecord::ActiveRecordError
        nil # ActiveRecord before 7.1 raises once
      end

      expect(store.mark_published(%w[a b])).to eq 2
    ensure
      ActiveRecord::Base.connection_pool.release_connection
    end

    it "leaves a lost transaction to the caller" do
      expect do
        ActiveRecord::Base.transaction do
          store.add(outbox_record("c"))
          end_sessions
          store.add(outbox_record("d"))
        end
      end.to raise_error(ActiveRecord::ActiveRecordError)
      ActiveRecord::Base.connection_pool.release_connection

      expect(rows.map { |row| row["id"] }).to eq %w[a b]
    end
  end
end
