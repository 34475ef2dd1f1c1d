# frozen_string_literal: true

module Docs
  # A Markdown file and the fenced blocks in it.
  class Document
    Block = Struct.new(:text, :line)

    ROOT = File.expand_path("../..", __dir__)

    # @return [Array<Document>] what readers are given
    def self.all
      [File.join(ROOT, "README.md"), *Dir[File.join(ROOT, "docs/*.md")]].map { |path| new(path) }
    end

    # @return [String]
    attr_reader :path

    def initialize(path)
      @path = File.expand_path(path, ROOT)
    end

    # @return [String] as "outbox"
    def name
      File.basename(path, ".md").downcase
    end

    # @param language [String]
    # @return [Array<Block>]
    def blocks(language)
      found = []
      current = nil
      File.readlines(path).each.with_index(1) do |line, number|
        if current
          line.start_with?("```") ? current = nil : current.text << line
        elsif line.chomp == "```#{language}"
          found << (current = Block.new(+"", number + 1))
        elsif line.start_with?("```")
          current = Block.new(+"", number)
        end
      end
      found
    end

    # @return [Array<String>] what is typed at a prompt
    def commands
      blocks("console").flat_map { |block| block.text.lines.grep(/\A\$ /) }.map { |line| line.delete_prefix("$ ").sub(/\s+#.*/m, "").strip }
    end
  end
end
