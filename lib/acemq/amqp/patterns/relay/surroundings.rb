# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # What a round of the background thread runs in, so that the thread holds no database connection while it
        # sleeps and sees no cached reads: Rails' executor, or, without Rails, only the handing back.
        module Surroundings
          # ActiveRecord asks for the role from this version on, and takes :all.
          ALL_ROLES_SINCE = "7.1"

          class << self
            def wrap(&block)
              executor = rails_executor
              executor ? executor.wrap(&block) : handing_back(&block)
            end

            private

            def rails_executor
              return unless defined?(::Rails) && ::Rails.respond_to?(:application)

              application = ::Rails.application
              application.executor if application.respond_to?(:executor)
            end

            def handing_back
              yield
            ensure
              hand_back if defined?(::ActiveRecord::Base)
            end

            def hand_back
              handler = ::ActiveRecord::Base.connection_handler
              if ::ActiveRecord.gem_version >= Gem::Version.new(ALL_ROLES_SINCE)
                handler.clear_active_connections!(:all)
              else
                handler.clear_active_connections!
              end
            end
          end
        end
      end
    end
  end
end
