# frozen_string_literal: true

# After a failover an application is left with sessions on a server that takes no writes, or with ones that began
# while it took none.
RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "in a read-only session" do
  on_each_database(:postgres, :mariadb) do
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }
    after { ActiveRecord::Base.connection.reconnect! }

    let(:store) { described_class.new }
    let(:read_only) do
      { postgres: "SET default_transaction_read_only = on", mariadb: "SET SESSION TRANSACTION READ ONLY" }.fetch(database)
    end

    it "fails once, and goes on over a session that is not" do
      add("m-1")
      ActiveRecord::Base.connection.execute(read_only)

      expect { store.claim(10) }.to raise_error(ActiveRecord::StatementInvalid, /read.only/i)
      expect(claimed_ids).to eq %w[m-1]
    end

    it "does not reconnect in the middle of somebody's transaction" do
      ActiveRecord::Base.connection.execute(read_only)
      before = session
      expect { ActiveRecord::Base.transaction { add("m-1") } }.to raise_error(ActiveRecord::StatementInvalid, /read.only/i)

      expect(session).to eq before
      expect(rows).to be_empty
    end

    def session
      ActiveRecord::Base.connection.select_value(
        database == :postgres ? "SELECT pg_backend_pid()" : "SELECT CONNECTION_ID()"
      )
    end
  end
end
