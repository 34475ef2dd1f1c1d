# frozen_string_literal: true

require "open3"
require "tmpdir"
require "acemq/cli"
require "acemq/operations"

RSpec.describe "acemq status" do
  around do |example|
    former = $PROGRAM_NAME
    example.run
  ensure
    $PROGRAM_NAME = former
  end

  on_each_database do |name|
    before(:context) { make_outbox }

    before do
      empty("acemq_outbox")
      without_broker
    end

    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new }

    def something_of_everything
      allow(AceMQ::AMQP::Patterns::Backoff).to receive(:seconds).and_return(60)
      add("old", routing_key: "a", created_at: Time.now - 200)
      add("done", "held", "retired", routing_key: "b")
      claim = store.claim(10)
      claim.settle(confirmed: ["done"], failed: [["retired", "too large", true]], held: [["held", "no queue"]], unsent: ["old"])
      store.claim(1)
    end

    it "says what waits, since when, what stands still, and who is at work" do
      something_of_everything
      run = acemq("status")

      expect(run.code).to eq 0
      expect(run.out).to match(/^outbox acemq_outbox\n  pending +2   the oldest written 3 m 2\d s ago$/)
        .and match(%r{^  published +0\.0/s   over the last minute$})
        .and match(/^  retired +1   acemq retry/)
        .and match(/^  held +1   destinations.*\n    shop b  1 in backoff$/)
        .and match(/^    [\w.-]+, process #{Process.pid}: 1 rows, since 2\d{3}-.*Z \(\d s\), (29|30) s left$/)
    end

    it "says it to programs" do
      something_of_everything
      run = acemq("status", "--json")

      expect(run.code).to eq 0
      expect(run.json).to match [
        { outbox: "acemq_outbox", at: match(/\A2\d{3}-.*Z\z/), pending: 2, oldest_seconds: be_between(200, 230),
          published_per_second: be_within(0.001).of(1 / 60.0), held: [{ exchange: "shop", routing_key: "b", rows: 1 }], retired: 1,
          leases: [{ holder: end_with("process #{Process.pid}"), since: match(/Z\z/), seconds_left: be_between(25, 30), rows: 1 }] }
      ]
    end

    it "shows a lease of another library by its token" do
      add("a")
      execute("UPDATE acemq_outbox SET locked_by = 'somebody', locked_until = #{sql_time(20)}")

      expect(acemq("status").out).to match(/^    somebody: 1 rows, (19|20) s left$/)
      expect(acemq("status", "--json").json.first[:leases].first).to include(holder: "somebody", since: nil)
    end

    it "ends with 78 where the table is missing, and says what to run" do
      run = acemq("status", "--table", "acemq_nowhere")

      expect(run.code).to eq 78
      expect(run.err).to match(/\Aacemq: table acemq_nowhere in the \w+ database .* does not exist: .*acemq:install/)
      expect(acemq("status", "--table", "acemq_nowhere", "--json").json).to match(error: /acemq_nowhere/, exit: 78)
    end

    next if name == :sqlite

    it "ends with 69 where the database does not answer" do
      run = without_database { acemq("status", "--json") }

      expect(run.code).to eq 69
      expect(run.err).to match(/\Aacemq: the database does not answer: .+\n +acemq doctor says more/)
      expect(run.json).to match(error: /does not answer/, exit: 69)
    end
  end

  it "goes on until Ctrl-C with --watch" do
    AceMQ::SpecSupport::Database.connect(:sqlite)
    make_outbox
    looks = 0
    allow(AceMQ::Operations::Status).to receive(:new).and_wrap_original do |original, *arguments|
      raise Interrupt if (looks += 1) == 3

      original.call(*arguments)
    end
    run = acemq("status", "--watch", "0.01s", "--json")

    expect(run.code).to eq 130
    expect(run.out.lines.size).to eq 3
    expect(run.json).to eq(error: "interrupted", exit: 130)
  ensure
    AceMQ::SpecSupport::Database.disconnect
  end

  it "shows each look at once, also into a pipe" do
    AceMQ::SpecSupport::Database.connect(:sqlite)
    make_outbox
    relaying = AceMQ::SpecSupport::RelayCommands::RelayCommand
    database = JSON.generate(AceMQ::SpecSupport::Database.config(:sqlite))
    settings = { "ACEMQ_SPEC_URL" => "amqp://127.0.0.1:1", "ACEMQ_SPEC_DATABASE" => database }
    IO.popen([settings, RbConfig.ruby, "-W0", "-I", relaying::LIB, relaying::EXECUTABLE, "status", "--watch", "60", "--require",
              relaying::APPLICATION]) do |output|
      expect(output.wait_readable(30)).to be_truthy
      expect(output.gets).to eq "outbox acemq_outbox\n"
    ensure
      Process.kill("INT", output.pid)
    end
    expect($?.exitstatus).to eq 130
  ensure
    AceMQ::SpecSupport::Database.disconnect
  end

  it "ends with 64 for what it does not know" do
    expect(acemq("statsu")).to have_attributes(code: 64, err: /statsu.*\n.*acemq help/m)
    expect(acemq("status", "--frobnicate")).to have_attributes(code: 64)
  end

  it "shows what a command does, and loads no application for it" do
    commands = %w[relay status drain retry purge replay doctor]
    expect_any_instance_of(AceMQ::CLI::Application).not_to receive(:load)

    commands.each { |command| expect(acemq(command, "--help")).to have_attributes(code: 0, out: /Usage:\n +acemq #{command}.*--table/m) }
    expect(acemq("retry", "an-id", "-h").out).to eq acemq("help", "retry").out
  end

  it "ends with 64 for a value that cannot be" do
    expect(acemq("status", "--watch", "abc")).to have_attributes(code: 64, out: "", err: /--watch must be a time such as/)
    expect(acemq("relay", "--threads", "1.9")).to have_attributes(code: 64, err: /--threads must be a whole number, not 1.9/)
    expect(acemq("relay", "--threads", "0")).to have_attributes(code: 64, err: /--threads must be 1 or more, not 0/)
    expect(acemq("relay", "--lease", "5")).to have_attributes(code: 64, err: /confirm_timeout: 10 s must be less than the store's lease/)
    expect(acemq("relay", "--probe", "port")).to have_attributes(code: 64, err: /--probe must be PORT or HOST:PORT/)
    expect(acemq("purge", "--batch", "0")).to have_attributes(code: 64, err: /batch: must be above 0/)
    expect(acemq("status", "--table", "a; b")).to have_attributes(code: 64, err: /is no table name/)
    expect(acemq("status", "--model", "Nobody")).to have_attributes(code: 78, err: /no class Nobody/)
  end

  it "ends with 78 for a shard that does not exist, also where a relay would wait for its database" do
    AceMQ::SpecSupport::Database.connect(:sqlite)
    %w[status relay].each { |command| expect(acemq(command, "--shard", "nosuch")).to have_attributes(code: 78, err: /has no shard nosuch/) }
  ensure
    AceMQ::SpecSupport::Database.disconnect
  end

  it "ends with 78 for an application that cannot be loaded, and says where" do
    Dir.mktmpdir do |folder|
      file = File.join(folder, "broken.rb")
      File.write(file, "Nowhere.call")
      code = nil
      expect { code = AceMQ::CLI.run(["status", "--require", file]) }
        .to output(/broken.rb cannot be loaded: NameError: uninitialized constant Nowhere.*broken.rb:1/).to_stderr
      expect(code).to eq 78
    end
  end

  it "ends with 78 without Thor, and says what to install" do
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "thor.rb"), 'raise LoadError, "cannot load such file -- thor"')
      lib = File.expand_path("../../../lib", __dir__)
      output, status = Open3.capture2e(RbConfig.ruby, "-W0", "-I", folder, "-I", lib, File.expand_path("../../../exe/acemq", __dir__))

      expect([output, status.exitstatus]).to match [/need the library Thor.*ruby-thor/m, 78]
    end
  end

  it "ends with 78 where there is no application" do
    code = nil
    expect { code = AceMQ::CLI.run(["status", "--require", "./config/nowhere"]) }
      .to output(%r{there is no .*config/nowhere\.rb: run this in the application's folder}).to_stderr
    expect(code).to eq 78
  end
end
