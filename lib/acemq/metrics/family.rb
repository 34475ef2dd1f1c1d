# frozen_string_literal: true

module AceMQ
  class Metrics
    # One metric with all its labels, safe to use from several threads.
    class Family
      ESCAPES = { "\\" => "\\\\", "\"" => "\\\"", "\n" => "\\n" }.freeze

      # @param name [String]
      # @param help [String]
      # @param type [Symbol] :counter or :gauge
      def initialize(name, help, type)
        @name = name
        @help = help
        @type = type
        @values = {}
        @lock = Mutex.new
      end

      # @param value [Numeric]
      # @param labels [Hash{Symbol => Object}]
      def add(value, **labels)
        @lock.synchronize { @values[labels] = @values.fetch(labels, 0) + value }
      end

      # @param value [Numeric]
      # @param labels [Hash{Symbol => Object}]
      def set(value, **labels)
        @lock.synchronize { @values[labels] = value }
      end

      # @return [String] with a line for each set of labels; a counter that was never used is 0
      def to_s
        values = @lock.synchronize { @values.dup }
        values = { {} => 0 } if values.empty? && @type == :counter
        return "" if values.empty?

        "#{head}#{values.map { |labels, value| line(@name, labels, value) }.join}"
      end

      private

      def head
        "# HELP #{@name} #{@help}\n# TYPE #{@name} #{@type}\n"
      end

      def line(name, labels, value)
        shown = labels.map { |label, text| "#{label}=\"#{text.to_s.gsub(/[\\"\n]/, ESCAPES)}\"" }.join(",")
        "#{name}#{"{#{shown}}" unless shown.empty?} #{value}\n"
      end
    end

    # How often a value was at most so large.
    class Histogram < Family
      Series = Struct.new(:counts, :total, :observed)

      # @param buckets [Array<Numeric>] upper bounds, ascending
      def initialize(name, help, buckets)
        super(name, help, :histogram)
        @buckets = buckets
      end

      # @param value [Numeric]
      # @param labels [Hash{Symbol => Object}]
      def observe(value, **labels)
        @lock.synchronize do
          series = @values[labels] ||= Series.new(Array.new(@buckets.size, 0), 0.0, 0)
          index = @buckets.index { |bound| value <= bound }
          series.counts[index] += 1 if index
          series.total += value
          series.observed += 1
        end
      end

      # @return [String]
      def to_s
        @lock.synchronize do
          return "" if @values.empty?

          head + @values.map { |labels, series| lines(labels, series) }.join
        end
      end

      private

      def lines(labels, series)
        sum = 0
        below = @buckets.zip(series.counts).map { |bound, count| line("#{@name}_bucket", labels.merge(le: bound), sum += count) }
        [*below, line("#{@name}_bucket", labels.merge(le: "+Inf"), series.observed), line("#{@name}_sum", labels, series.total),
         line("#{@name}_count", labels, series.observed)].join
      end
    end
  end
end
