# frozen_string_literal: true

require_relative "finding"
require_relative "../../../acemq_native/version"

module AceMQ
  module Operations
    class Doctor
      # What runs here.
      class Versions
        # @return [Array<Finding>]
        def examine
          rails = "Rails #{::Rails.version}" if defined?(::Rails) && ::Rails.respond_to?(:version)
          record = "ActiveRecord #{::ActiveRecord.version}" if defined?(::ActiveRecord)
          [Finding.ok("versions", ["acemq_native #{Native::VERSION}", "Ruby #{RUBY_VERSION}", rails || record].compact.join(", "))]
        end
      end
    end
  end
end
