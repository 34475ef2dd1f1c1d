# frozen_string_literal: true

require_relative "../operations"
require_relative "doctor/finding"
require_relative "doctor/destinations"
require_relative "doctor/versions"
require_relative "doctor/outbox_table"
require_relative "doctor/claim_plan"
require_relative "doctor/outbox_work"
require_relative "doctor/refusal"
require_relative "doctor/database_server"
require_relative "doctor/idempotency_table"
require_relative "doctor/broker"
require_relative "doctor/management"

module AceMQ
  module Operations
    # Looks at everything that has to be right for messages to arrive, and says of each thing what it found and what to
    # do about it. Changes nothing: on the broker it makes a queue of its own for a moment.
    class Doctor
      # @param outboxes [Enumerable<Outboxes::Named>]
      # @param connection [AMQP::Connection]
      # @param idempotency [String, nil] name of the table of keys; the usual one, if it is there, when nil
      # @param management [String, nil] address of the broker's management plugin, with user and password
      # @raise [ArgumentError] for an address that is none
      def initialize(outboxes, connection, idempotency: nil, management: nil)
        @outboxes = outboxes
        @connection = connection
        @idempotency = idempotency
        @management = management && ManagementAPI.address(management)
      end

      # @return [Array<Finding>]
      def examine
        destinations = Destinations.new
        findings = Versions.new.examine
        @outboxes.each { |outbox| findings.concat(of_outbox(outbox, destinations)) }
        findings.concat(IdempotencyTable.new(@idempotency).examine)
        findings.concat(Broker.new(@connection, destinations).examine, of_management(destinations))
      end

      private

      def of_management(destinations)
        return [] unless @management

        Management.new(@management, BrokerUser.of(AceMQ::Rails.config), destinations).examine
      end

      # What cannot be read at all is one finding, not one of each kind.
      def of_outbox(outbox, destinations)
        table = OutboxTable.new(outbox)
        unreachable = table.unreachable
        return [unreachable] if unreachable

        work = OutboxWork.new(outbox)
        findings = [table, ClaimPlan.new(outbox), DatabaseServer.new(outbox), work].flat_map { |part| look(part, table.subject) }
        destinations.add(outbox, work.destinations)
        findings.uniq
      end

      # What one part may not read hides nothing of the others.
      def look(part, subject)
        part.examine
      rescue ::ActiveRecord::ActiveRecordError => e
        [Refusal.new(subject, e).finding]
      end
    end
  end
end
