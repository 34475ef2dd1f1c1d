# frozen_string_literal: true

module AceMQ
  module AMQP
    module Telemetry
      # An observer that keeps the numbers in this process: for specs, and for a page that Prometheus reads.
      # Each process has its own.
      class Registry
        # Upper bounds of the buckets of seconds.
        BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60].freeze
        # Upper bounds of the buckets of attempts.
        ATTEMPTS = [1, 2, 3, 5, 10, 20].freeze

        # What was observed.
        class Timing
          # @return [Integer] observations
          attr_reader :count
          # @return [Numeric]
          attr_reader :sum, :max
          # @return [Array<Numeric>] upper bounds
          attr_reader :bounds
          # @return [Array<Integer>] observations up to each bound
          attr_reader :buckets

          def initialize(bounds)
            @count = 0
            @sum = @max = 0.0
            @bounds = bounds
            @buckets = Array.new(bounds.size, 0)
          end

          # @return [Float] 0.0 without observations
          def mean
            count.zero? ? 0.0 : sum / count
          end

          # @api private
          def add(value)
            @count += 1
            @sum += value
            @max = [max, value].max
            bounds.each_with_index { |bound, index| @buckets[index] += 1 if value <= bound }
          end

          private

          def initialize_copy(other)
            @buckets = other.buckets.dup
          end
        end

        def initialize
          @mutex = Mutex.new
          @counts = series
          @gauges = series
          @timings = series
        end

        def count(metric, delta = 1, **labels)
          @mutex.synchronize { @counts[metric][labels] = (@counts[metric][labels] || 0) + delta }
          nil
        end

        def gauge(metric, value, **labels)
          @mutex.synchronize { @gauges[metric][labels] = value }
          nil
        end

        def observe(metric, value, **labels)
          bounds = metric == CONSUME_ATTEMPTS ? ATTEMPTS : BUCKETS
          @mutex.synchronize { (@timings[metric][labels] ||= Timing.new(bounds)).add(value) }
          nil
        end

        # One number: a counter's sum over all series that have these labels, a gauge's value, or how often a metric was
        # observed.
        #
        # @param metric [String]
        # @param labels [Hash{Symbol => Object}]
        # @return [Numeric] 0 for what has not been told
        # @example registry["acemq.consume.total", queue: "orders", outcome: "acked"]
        def [](metric, **labels)
          @mutex.synchronize do
            found = [@counts, @gauges, @timings].find { |kind| kind.key?(metric) }
            matching = found ? found[metric].select { |given, _| labels <= given }.values : []
            matching.sum { |value| value.is_a?(Timing) ? value.count : value }
          end
        end

        # @return [Hash{String => Hash{Hash => Numeric}}] a copy: by metric, by labels
        def counts
          copy(@counts)
        end

        # @return [Hash{String => Hash{Hash => Numeric}}] a copy
        def gauges
          copy(@gauges)
        end

        # @return [Hash{String => Hash{Hash => Timing}}] a copy
        def timings
          @mutex.synchronize { @timings.transform_values { |values| values.transform_values(&:dup) } }
        end

        # @return [String] in Prometheus' text format, 0.0.4
        def to_prometheus
          lines = []
          counts.each { |metric, values| lines.concat(Prometheus.counter(metric, values)) }
          gauges.each { |metric, values| lines.concat(Prometheus.gauge(metric, values)) }
          timings.each { |metric, values| lines.concat(Prometheus.histogram(metric, values)) }
          lines.map { |line| "#{line}\n" }.join
        end

        private

        def series
          Hash.new { |metrics, name| metrics[name] = {} }
        end

        def copy(kind)
          @mutex.synchronize { kind.transform_values(&:dup) }
        end

        # Names and values as Prometheus takes them: it has no dots in names.
        #
        # @api private
        module Prometheus
          ESCAPES = { "\\" => "\\\\", "\"" => "\\\"", "\n" => "\\n" }.freeze

          class << self
            def counter(metric, values)
              ["# TYPE #{name(metric)} counter", *values.map { |labels, value| sample(name(metric), labels, value) }]
            end

            def gauge(metric, values)
              ["# TYPE #{name(metric)} gauge", *values.map { |labels, value| sample(name(metric), labels, value) }]
            end

            def histogram(metric, values)
              ["# TYPE #{name(metric)} histogram", *values.flat_map { |labels, timing| timing(name(metric), labels, timing) }]
            end

            private

            def timing(name, labels, timing)
              bounds = [*timing.bounds, "+Inf"].zip([*timing.buckets, timing.count])
              [*bounds.map { |bound, count| sample("#{name}_bucket", labels.merge(le: bound), count) },
               sample("#{name}_sum", labels, timing.sum), sample("#{name}_count", labels, timing.count)]
            end

            def sample(name, labels, value)
              return "#{name} #{value}" if labels.empty?

              pairs = labels.map { |label, given| "#{name(label)}=\"#{given.to_s.gsub(/["\\\n]/, ESCAPES)}\"" }
              "#{name}{#{pairs.join(",")}} #{value}"
            end

            def name(text)
              text.to_s.gsub(/[^a-zA-Z0-9_]/, "_")
            end
          end
        end
        private_constant :Prometheus
      end
    end
  end
end
