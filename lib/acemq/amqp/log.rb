# frozen_string_literal: true

module AceMQ
  module AMQP
    # What has nobody to be raised to: into Rails' log where there is one, else to standard error. Not `Kernel#warn`,
    # which says nothing under `-W0`.
    #
    # @api private
    module Log
      # Among the lines of an application, ours are found by it.
      PREFIX = "acemq: "

      class << self
        def error(text)
          logger ? logger.error(PREFIX + text) : say(text)
        end

        def warn(text)
          logger ? logger.warn(PREFIX + text) : say(text)
        end

        def info(text)
          logger ? logger.info(PREFIX + text) : say(text)
        end

        private

        def say(text)
          $stderr.puts(PREFIX + text) # rubocop:disable Style/StderrPuts -- see above
        end

        def logger
          ::Rails.logger if defined?(::Rails) && ::Rails.respond_to?(:logger)
        end
      end
    end
  end
end
