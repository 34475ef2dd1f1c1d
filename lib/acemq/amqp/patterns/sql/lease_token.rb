# frozen_string_literal: true

require "socket"
require_relative "../../../native"

module AceMQ
  module AMQP
    module Patterns
      # What `locked_by` says: the host and the process that hold a row, and a UUID v7, which is different for every
      # claim and has the time of the claim in it. Other libraries write a bare UUID.
      #
      # @api private
      module LeaseToken
        LENGTH = 64 # the family's column
        SHAPE = /\A(?<host>[^:]*):(?<pid>\d+):(?<milliseconds>\h{8}-\h{4})-7\h{3}-\h{4}-\h{12}\z/

        class << self
          # @return [String] at most {LENGTH} characters, ASCII
          def generate
            end_of_it = ":#{Process.pid}:#{Native.uuid_v7}"
            "#{host[0, LENGTH - end_of_it.size]}#{end_of_it}"
          end

          # @param token [String]
          # @return [Array(String, Time)] who holds it and since when; the token itself and nil where it does not say
          def read(token)
            parts = SHAPE.match(token) or return [token, nil]
            ["#{parts[:host]}, process #{parts[:pid]}", Time.at(0, parts[:milliseconds].delete("-").hex, :millisecond).utc]
          end

          private

          def host
            @host ||= Socket.gethostname.gsub(/[^A-Za-z0-9.-]/, "-")
          end
        end
      end
    end
  end
end
