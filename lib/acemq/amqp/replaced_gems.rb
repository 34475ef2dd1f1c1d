# frozen_string_literal: true

module AceMQ
  # The gems whose API this one has, under the same names. Both in one process
  # would be neither of the two, so it is refused before anything is defined.
  #
  # @api private
  module ReplacedGems
    NAMES = %w[acemq-amqp acemq-amqp-rails].freeze
    OWN_LIB = File.expand_path("../..", __dir__)

    class << self
      # @raise [LoadError] when one of them is loaded, or activated by Bundler
      def refuse!
        found = activated + loaded
        return if found.empty?

        raise LoadError, "acemq_native replaces #{NAMES.join(" and ")} and cannot share a process with them " \
                         "(found #{found.join(", ")}): remove them from the Gemfile and from the requires"
      end

      private

      def activated
        NAMES.select { |name| Gem.loaded_specs.key?(name) }
      end

      def loaded
        $LOADED_FEATURES.grep(%r{/acemq/(amqp|rails)\.rb\z}).reject { |path| File.dirname(path, 2) == OWN_LIB }
      end
    end
  end
end

AceMQ::ReplacedGems.refuse!
