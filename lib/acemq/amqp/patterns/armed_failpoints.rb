# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # The failpoints that {Failpoint} was told to arm.
      #
      # @api private
      class ArmedFailpoints
        # What `raise` raises.
        class Reached < StandardError; end

        ENTRY = /\A(?<name>\w+)=(?<action>kill|stop|raise|sleep)(?::(?<seconds>\d+(?:\.\d+)?))?
                 (?:@(?<probability>[01](?:\.\d+)?)|\#(?<passage>\d+))?\z/x
        SEED = /\Aseed=(\d+)\z/

        # @param text [String]
        # @raise [ArgumentError] naming the entry that is none
        def initialize(text)
          seeds, entries = text.split(",").map(&:strip).partition { |entry| entry.match?(SEED) }
          @random = seeds.empty? ? Random.new : Random.new(seeds.last[SEED, 1].to_i)
          @points = entries.to_h { |entry| parse(entry) }
          @passages = Hash.new(0)
          @lock = Mutex.new
        end

        # @param name [Symbol]
        # @return [nil]
        # @raise [Reached] when that is what is to happen
        def reach(name)
          point = @points[name]
          act(name, point) if point && meant?(name, point)
        end

        private

        def parse(entry)
          point = ENTRY.match(entry)
          name = point && point[:name].to_sym
          unless Failpoint::NAMES.include?(name)
            raise ArgumentError, "#{Failpoint::VARIABLE}: #{entry.inspect} is no failpoint; they look like " \
                                 "after_claim=kill@0.1 and are #{Failpoint::NAMES.join(", ")}"
          end

          [name, point]
        end

        def meant?(name, point)
          @lock.synchronize do
            @passages[name] += 1
            next @passages[name] == point[:passage].to_i if point[:passage]

            @random.rand < (point[:probability] || 1).to_f
          end
        end

        def act(name, point)
          case point[:action]
          when "kill", "stop" then signal(point[:action])
          when "raise" then raise Reached, "failpoint #{name}"
          else sleep((point[:seconds] || 1).to_f)
          end
          nil
        end

        # Another thread may be the one that takes it, and this one must go no step further meanwhile.
        def signal(name)
          Process.kill(name.upcase, Process.pid)
          sleep(0.2)
        end
      end
    end
  end
end
