# frozen_string_literal: true

require "open3"
require "tmpdir"
require_relative "chaos/relay_process"

RSpec.describe AceMQ::AMQP::Patterns::Failpoint do
  def armed(text)
    described_class.armed(text)
  end

  it "is off unless the environment says otherwise" do
    expect(described_class::ARMED).to be_nil
    expect(described_class.reach(:after_claim)).to be_nil
    expect(armed("")).to be_nil
  end

  it "raises where it is told to, and nowhere else" do
    points = armed("after_claim=raise")

    expect { points.reach(:after_claim) }.to raise_error(/failpoint after_claim/)
    expect(points.reach(:before_claim)).to be_nil
  end

  it "waits for its passage" do
    points = armed("mid_mark=raise#3")
    2.times { points.reach(:mid_mark) }

    expect { points.reach(:mid_mark) }.to raise_error(/mid_mark/)
    expect(points.reach(:mid_mark)).to be_nil
  end

  it "keeps to its probability, the same with the same seed" do
    passages = lambda do |text|
      points = armed(text)
      Array.new(200) do
        points.reach(:after_claim)
        false
      rescue StandardError
        true
      end
    end

    expect(passages.call("after_claim=raise@0.1,seed=7").count(true)).to be_between(5, 45)
    expect(passages.call("after_claim=raise@0.1,seed=7")).to eq passages.call("after_claim=raise@0.1,seed=7")
    expect(passages.call("after_claim=raise@0,seed=7")).not_to include(true)
  end

  it "sleeps" do
    expect(elapsed { armed("before_claim=sleep:0.05").reach(:before_claim) }).to be >= 0.05
  end

  it "refuses what is no failpoint, and says what one looks like" do
    ["after_lunch=kill", "after_claim=dance", "after_claim", "after_claim=kill@often"].each do |text|
      expect { armed(text) }.to raise_error(ArgumentError, /ACEMQ_FAILPOINTS: #{text.inspect} .*after_claim=kill@0.1/)
    end
  end

  # What a relay has and has not done when it stops at each of them, then goes on, and finishes.
  describe "in a relay of its own process", :broker do
    before(:context) { AceMQ::SpecSupport::Database.connect(:sqlite) }
    after(:context) { AceMQ::SpecSupport::Database.disconnect }
    before { make_outbox }
    after { @relay&.kill }

    let(:folder) { Dir.mktmpdir.tap { |path| cleanups << -> { FileUtils.rm_rf(path) } } }
    let(:amqp) { open_connection }
    let(:queue) { new_queue(amqp) }
    let(:relay) { @relay = start("stop") }

    def start(action)
      settings = { database: AceMQ::SpecSupport::Database.config(:sqlite), url: broker.url, close_within: 5,
                   store: { lease: 60 }, relay: { interval: 0.1, confirm_timeout: 20 } }
      AceMQ::Chaos::RelayProcess.new("relay", settings, folder: folder, failpoints: "#{place}=#{action}#1").go
    end

    # One lane that is delivered, and one that is not, so that a settlement has two statements.
    def put_some
      ActiveRecord::Base.transaction do
        5.times { |n| put("good-#{n}", to: queue) }
        put("nowhere", to: "#{queue}.nobody")
      end
    end

    def stopped_relay
      put_some
      relay
      eventually(20) { expect(relay).to be_stopped }
    end

    def finish
      relay.continue
      eventually(20) { expect(marked.size).to eq 5 }
      expect(ids_in(amqp, queue).uniq.size).to eq 5
      eventually { expect(charged.keys).to eq %w[nowhere] }
      end_relay
    end

    def end_relay
      relay.terminate
      relay.wait(10)
      expect(relay.misdeeds_at_end).to be_empty
    end

    context "before_claim" do
      let(:place) { "before_claim" }

      it "nothing is leased" do
        stopped_relay
        expect(leased).to be_empty
        finish
      end
    end

    context "mid_claim" do
      let(:place) { "mid_claim" }

      it "everything is leased, and nothing sent" do
        stopped_relay
        expect(leased.size).to eq 6
        expect(amqp.message_count(queue)).to eq 0
        finish
      end
    end

    context "after_claim" do
      let(:place) { "after_claim" }

      it "everything is leased, and nothing sent" do
        stopped_relay
        expect(leased.size).to eq 6
        expect(amqp.message_count(queue)).to eq 0
        finish
      end
    end

    context "after_publish" do
      let(:place) { "after_publish" }

      it "something is in the queue, and nothing marked" do
        stopped_relay
        eventually { expect(amqp.message_count(queue)).to be_positive }
        expect(marked).to be_empty
        expect(leased.size).to eq 6
        finish
      end
    end

    context "after_confirm" do
      let(:place) { "after_confirm" }

      it "everything is in the queue, and nothing marked" do
        stopped_relay
        expect(amqp.message_count(queue)).to eq 5
        expect(marked).to be_empty
        finish
      end
    end

    context "mid_mark" do
      let(:place) { "mid_mark" }

      it "what was confirmed is marked, and the rest still leased" do
        stopped_relay
        expect(marked.size).to eq 5
        expect(leased).to eq %w[nowhere]
        finish
      end
    end

    context "after_publish, where the core is told to die" do
      let(:place) { "after_publish" }

      it "kills" do
        put_some
        @relay = start("kill")
        @relay.wait(20)

        expect(@relay.status.termsig).to eq 9
        expect(marked).to be_empty
      end

      it "panics, which is an ordinary error and a new connection" do
        put_some
        @relay = start("raise")
        eventually(20) { expect(marked.size).to eq 5 }

        expect(@relay.errors).to include(a_string_matching(/a defect in acemq_native stopped this batch/))
        expect(@relay).to be_running
      end
    end
  end

  it "refuses a mistake when the gem is loaded" do
    _, errors, status = Open3.capture3({ "ACEMQ_FAILPOINTS" => "nonsense" }, RbConfig.ruby, "-I", "lib", "-e",
                                       'require "acemq_native"')

    expect(status).not_to be_success
    expect(errors).to include('ACEMQ_FAILPOINTS: "nonsense" is no failpoint')
  end
end
