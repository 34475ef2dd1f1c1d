# frozen_string_literal: true

module AceMQ
  module Operations
    # What ActiveRecord raised, in words that tell a server that is away from one that answered, and said no.
    class DatabaseFailure
      # By name: neither ActiveRecord nor a driver need be loaded.
      ANY = "ActiveRecord::ActiveRecordError"
      # ActiveRecord gives some of them no class of their own, and the driver's is their cause.
      AWAY = %w[ActiveRecord::ConnectionNotEstablished ActiveRecord::ConnectionFailed PG::ConnectionBad PG::UnableToSend
                Mysql2::Error::ConnectionError SQLite3::CantOpenException].freeze

      class << self
        # @param error [Exception]
        # @return [Boolean] whether ActiveRecord raised it
        def of?(error)
          kind?(error, [ANY])
        end

        # @param error [Exception]
        # @param names [Array<String>] of classes
        # @return [Boolean] whether it is one of them
        def kind?(error, names)
          error.class.ancestors.any? { |ancestor| names.include?(ancestor.name) }
        end

        # @param error [Exception]
        # @return [String] one line: drivers add the statement, and advice of their own, below it
        def message_of(error)
          error.message.to_s.lines.map(&:strip).reject(&:empty?).first(2).join(" ")
        end
      end

      # @param error [ActiveRecord::ActiveRecordError]
      def initialize(error)
        @error = error
      end

      # @return [Boolean] whether no answer came
      def away?
        [@error, @error.cause].compact.any? { |error| self.class.kind?(error, AWAY) }
      end

      # @return [String] one line
      def to_s
        "#{away? ? "the database does not answer" : "the database refused"}: #{message}"
      end

      # @return [String] one line
      def message
        self.class.message_of(@error)
      end
    end
  end
end
