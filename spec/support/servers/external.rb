# frozen_string_literal: true

module AceMQ
  module TestServers
    # Something was asked for that only a server of our own can do.
    class NotOurs < StandardError
    end

    # A server that was there before us: used, never started or stopped.
    class External
      @refusal = ->(message) { raise NotOurs, message }

      class << self
        attr_reader :refusal

        # What to do instead of raising {NotOurs}: a test framework has its own way to skip.
        def refuse_with(&refusal)
          @refusal = refusal
        end
      end

      attr_reader :url

      def initialize(url, variable)
        @url = url
        @variable = variable
      end

      # @return [Hash] for ActiveRecord, which reads the adapter from the scheme
      def config
        { url: url.sub(/\Amysql:/, "mysql2:") }
      end

      def ours?
        false
      end

      %i[start stop kill pause resume pid ctl alarm! tls_url certificates].each do |name|
        define_method(name) do |*|
          External.refusal.call("#{name}: #{@variable} names a server that this run did not start")
        end
      end
    end
  end
end
