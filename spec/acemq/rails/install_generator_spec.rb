# frozen_string_literal: true

require "acemq/rails"
require "erb"
require "yaml"

RSpec.describe "the generator acemq:install" do
  def index_names
    connection { |db| db.indexes("acemq_outbox").map(&:name) }
  end

  theirs = "# theirs\n"
  theirs_at = "app/models/outbox_message.rb"

  before(:context) do
    @fresh = generate("install")
    @existing = generate("install", "--existing", files: { theirs_at => theirs })
  end

  after(:context) { FileUtils.rm_rf([@fresh, @existing]) }

  it "writes one migration for each table, for the version of Rails that it runs under" do
    files = Dir[File.join(@fresh, "db/migrate/*.rb")].sort

    expect(files.map { |file| File.basename(file) })
      .to match [/\A\d{14}_create_acemq_outbox.rb\z/, /\A\d{14}_create_acemq_idempotency.rb\z/]
    expect(files.map { |file| File.read(file) })
      .to all(include("ActiveRecord::Migration[#{ActiveRecord::Migration.current_version}]"))
  end

  it "writes the models, stores and executables that documents speak of, and settings" do
    files = Dir[File.join(@fresh, "{app,bin,config}/**/*")].select { |file| File.file?(file) }

    expect(files.map { |file| file.delete_prefix("#{@fresh}/") }).to match_array %w[
      app/models/active_record_idempotency_store.rb app/models/active_record_outbox_store.rb app/models/handled_message.rb
      app/models/outbox_message.rb bin/acemq bin/acemq-consumer config/acemq.yml config/initializers/acemq.rb
    ]
    expect(File.read(File.join(@fresh, "bin/acemq-consumer"))).to include 'Gem.bin_path("acemq_native", "acemq-consumer")'
    expect(File).to be_executable(File.join(@fresh, "bin/acemq"))
  end

  it "writes settings that the configuration knows, also those in comments" do
    text = ERB.new(File.read(File.join(@fresh, "config/acemq.yml"))).result
    uncommented = text.lines.map { |line| line.sub(/^  # (?=topology|  )/, "  ") }.join

    [text, uncommented].each do |yaml|
      expect(AceMQ::Rails::Configuration.new(YAML.safe_load(yaml).fetch("shared")).validate!.url).to start_with "amqp://"
    end
  end

  it "leaves what is there" do
    expect(File.read(File.join(@existing, theirs_at))).to eq theirs
  end

  on_each_database do
    before do
      connection { |db| %w[acemq_outbox acemq_idempotency].each { |table| db.drop_table(table, if_exists: true) } }
    end

    it "makes tables that the stores find complete, and takes them away again" do
      migrations(@fresh).each { |migration| migrate(migration, :up) }

      expect(AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new.check!.pending_count).to eq 0
      expect(AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new.check!.size).to eq 0
      migrations(@fresh).each { |migration| migrate(migration, :down) }
      expect(connection(&:tables)).not_to include("acemq_outbox", "acemq_idempotency")
    end

    it "adds indexes to a table that is there" do
      make_outbox(:application)

      migrations(@existing).each { |migration| migrate(migration, :up) }
      expect(index_names).to include("acemq_outbox_destination")
      migrations(@existing).each { |migration| migrate(migration, :down) }
      expect(index_names).not_to include("acemq_outbox_destination")
    end
  end

  on_each_database(:mariadb) do
    it "makes columns that tell texts apart by their bytes, keep microseconds, and hold large bodies" do
      make_outbox
      make_idempotency
      columns = connection { |db| db.columns("acemq_outbox") + db.columns("acemq_idempotency") }

      expect(columns.filter_map(&:collation)).to all(eq "utf8mb4_bin")
      expect(columns.select { |column| column.type == :datetime }.map(&:precision)).to all(eq 6)
      expect(columns.find { |column| column.name == "body" }.limit).to eq 16_777_215
    end
  end

  on_each_database(:postgres) do
    it "leaves room on the pages of the outbox for updates" do
      make_outbox

      expect(value("SELECT reloptions::text FROM pg_class WHERE relname = 'acemq_outbox'")).to eq "{fillfactor=70}"
    end
  end
end
