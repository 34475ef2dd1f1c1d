# frozen_string_literal: true

require "open3"
require "rbconfig"
require "tmpdir"

# Each in a process of its own: what is loaded here says nothing about an application.
RSpec.describe "what a require loads" do
  def ruby(script, *load_path)
    folders = (load_path + $LOAD_PATH).flat_map { |path| ["-I", path] }
    Open3.capture2e({ "RUBYOPT" => nil }, RbConfig.ruby, "-w", *folders, "-e", script)
  end

  def printed(script, *load_path)
    out, status = ruby(script, *load_path)
    raise out unless status.success?

    out.lines.grep_v(/warning:/).join.strip
  end

  it "leaves patterns, Rails and ActiveRecord alone for acemq/amqp" do
    expect(printed(<<~RUBY)).to eq("[nil, nil, nil, nil]")
      require "acemq/amqp"
      p [defined?(AceMQ::AMQP::Patterns), defined?(::Rails), defined?(::ActiveRecord), defined?(::ActiveSupport)]
    RUBY
  end

  it "warns of nothing" do
    out, = ruby('require "acemq_native"; require "acemq/testing"; require "acemq/rails"')

    expect(out.lines.grep(%r{/lib/acemq})).to eq([])
  end

  it "has the patterns without ActiveRecord" do
    expect(printed('require "acemq/amqp/patterns"; p [AceMQ::AMQP::Patterns.class, defined?(::ActiveRecord)]'))
      .to eq("[Module, nil]")
  end

  it "has stores on drivers' connections that work without ActiveRecord" do
    Dir.mktmpdir do |folder|
      expect(printed(<<~RUBY)).to eq('[1, :duplicate, 1, "SQLite3::BusyException", nil]')
        require "acemq_native"
        require "sqlite3"
        patterns = AceMQ::AMQP::Patterns
        db, other = Array.new(2) { SQLite3::Database.new("#{folder}/raw.sqlite3") }
        outbox = patterns::SQLOutboxStore.new(connection: db)
        keys = patterns::SQLIdempotencyStore.new(connection: db)
        [outbox, keys].each(&:create_schema)
        outbox.add(patterns.record(AceMQ::AMQP::Connection.lazy("amqp://127.0.0.1:1"), {}, to: "q"))
        keys.claim("k")
        keys.confirm("k")
        other.transaction(:exclusive)
        busy = outbox.pending rescue $!.class.name
        other.rollback
        p [outbox.size, keys.claim("k"), outbox.pending.size, busy, defined?(::ActiveRecord)]
      RUBY
    end
  end

  it "has acemq/rails without Rails" do
    expect(printed('require "acemq/rails"; p [AceMQ::Rails::Consumer.name, defined?(::Rails), defined?(::ActiveSupport)]'))
      .to eq('["AceMQ::Rails::Consumer", nil, nil]')
  end

  it "has everything in acemq_native, and the Rails parts where Rails is" do
    expect(printed('require "acemq_native"; p [AceMQ::AMQP::Patterns.class, defined?(AceMQ::Rails)]')).to eq("[Module, nil]")
    expect(printed('require "rails"; require "acemq_native"; p AceMQ::Rails::Railtie.superclass')).to eq("Rails::Railtie")
  end

  it "says what to run when the extension is not compiled" do
    out, status = ruby(<<~RUBY)
      module Kernel
        alias require_before require
        def require(name) = name == "acemq_native/acemq_native" ? raise(LoadError, "cannot load such file") : require_before(name)
      end
      require "acemq/amqp"
    RUBY

    expect(status).not_to be_success
    expect(out).to match(/compiled extension cannot be loaded.*rake compile/)
  end

  describe "together with the gems it replaces" do
    def with_family_gem
      Dir.mktmpdir do |folder|
        FileUtils.mkdir_p(File.join(folder, "acemq"))
        File.write(File.join(folder, "acemq/amqp.rb"), "module AceMQ; module AMQP; VERSION = '0.7.10'; end; end")
        yield folder
      end
    end

    it "refuses to be the second in a process, naming what to remove" do
      with_family_gem do |folder|
        own = File.expand_path("../../lib/acemq_native", __dir__)
        out, status = ruby("require #{File.join(folder, "acemq/amqp").inspect}; require #{own.inspect}")

        expect(status).not_to be_success
        expect(out).to match(/acemq_native replaces acemq-amqp and acemq-amqp-rails.*remove them from the Gemfile/)
      end
    end

    it "refuses to share a bundle with them" do
      out, status = ruby('Gem.loaded_specs["acemq-amqp"] = Gem::Specification.new; require "acemq_native"')

      expect(status).not_to be_success
      expect(out).to match(/found acemq-amqp\)/)
    end
  end
end
