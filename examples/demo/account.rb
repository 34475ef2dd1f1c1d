# frozen_string_literal: true

# The closing table, and whether it reconciles.
Account = Struct.new(:committed, :rolled_back, :published, :arrived, :repeated, :delivered_again, :shipped,
                     keyword_init: true) do
  def rows
    {
      "orders committed" => committed.size,
      "orders rolled back" => rolled_back,
      "rows published" => published,
      "distinct messages in the queue" => arrived.uniq.size,
      "duplicates on the wire" => repeated + delivered_again,
      "effects" => shipped.size
    }
  end

  # @return [Array<String>] what does not add up; empty when all does
  def complaints
    [
      complaint("orders without a message", committed - arrived),
      complaint("messages without an order", arrived - committed),
      complaint("orders not shipped", committed - shipped),
      complaint("orders shipped twice", shipped.tally.select { |_, times| times > 1 }.keys),
      ("#{committed.size - published} rows are not published" unless published == committed.size)
    ].compact
  end

  def print
    width = rows.keys.map(&:size).max
    rows.each { |name, count| puts format("  %-#{width}s  %8d", name, count) }
  end

  private

  def complaint(what, numbers)
    "#{what}: #{numbers.size} (#{numbers.first(5).join(", ")}#{", ..." if numbers.size > 5})" if numbers.any?
  end
end
