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

            # One call of a store that knows nothing of pools. A connection that was not held before is not held
            # after it, while the relay waits for the broker: for hours, under an alarm.
            def lending
              return yield unless defined?(::ActiveRecord::Base)

              held = holding?
              begin
                yield
              ensure
                hand_back unless held
              end
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
              all_roles? ? handler.clear_active_connections!(:all) : handler.clear_active_connections!
            end

            def holding?
              handler = ::ActiveRecord::Base.connection_handler
              all_roles? ? handler.active_connections?(:all) : handler.active_connections?
            end

            def all_roles?
              ::ActiveRecord.gem_version >= Gem::Version.new(ALL_ROLES_SINCE)
            end
          end
        end
      end
    end
  end
end
