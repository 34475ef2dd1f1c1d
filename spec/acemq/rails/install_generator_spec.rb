# frozen_string_literal: true

require "open3"
require "tmpdir"

RSpec.describe "the generator acemq:install" do
  # In a process of its own, because Rails' generators load much of Rails.
  def generate(*options)
    folder = Dir.mktmpdir
    script = <<~RUBY
      require "generators/acemq/install/install_generator"
      Acemq::Generators::InstallGenerator.start(ARGV, destination_root: #{folder.inspect}, quiet: true)
    RUBY
    output, status = Open3.capture2e(RbConfig.ruby, "-I", File.expand_path("../../../lib", __dir__), "-e", script, "--", *options)
    raise output unless status.success?

    folder
  end

  def migrations(folder)
    Dir[File.join(folder, "db/migrate/*.rb")].sort.map do |file|
      load file
      Object.const_get(File.basename(file, ".rb").sub(/\A\d+_/, "").camelize)
    end
  end

  def run(migration, direction)
    ActiveRecord::Migration.suppress_messages { migration.migrate(direction) }
  ensure
    ActiveRecord::Base.connection_pool.release_connection
  end

  def index_names
    connection { |db| db.indexes("acemq_outbox").map(&:name) }
  end

  before(:context) do
    @fresh = generate
    @existing = generate("--existing")
  end

  after(:context) { FileUtils.rm_rf([@fresh, @existing]) }

  it "writes one migration for each table, for the version of Rails that it runs under" do
    files = Dir[File.join(@fresh, "db/migrate/*.rb")].sort

    expect(files.map { |file| File.basename(file) })
      .to match [/\A\d{14}_create_acemq_outbox.rb\z/, /\A\d{14}_create_acemq_idempotency.rb\z/]
    expect(files.map { |file| File.read(file) })
      .to all(include("ActiveRecord::Migration[#{ActiveRecord::Migration.current_version}]"))
  end

  on_each_database do
    before do
      connection { |db| %w[acemq_outbox acemq_idempotency].each { |table| db.drop_table(table, if_exists: true) } }
    end

    it "makes tables that the stores find complete, and takes them away again" do
      migrations(@fresh).each { |migration| run(migration, :up) }

      expect(AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new.check!.pending_count).to eq 0
      expect(AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new.check!.size).to eq 0
      migrations(@fresh).each { |migration| run(migration, :down) }
      expect(connection(&:tables)).not_to include("acemq_outbox", "acemq_idempotency")
    end

    it "adds indexes to a table that is there" do
      make_outbox(:application)

      migrations(@existing).each { |migration| run(migration, :up) }
      expect(index_names).to include("acemq_outbox_destination")
      migrations(@existing).each { |migration| run(migration, :down) }
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
