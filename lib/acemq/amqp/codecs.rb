# frozen_string_literal: true

require_relative "bytes_codec"
require_relative "json_codec"
require_relative "string_codec"

module AceMQ
  module AMQP
    # Codecs by name, for settings that are text ("json").
    module Codecs
      @builders = {}
      @mutex = Mutex.new

      class << self
        # @param name [String, Symbol]
        # @yieldreturn [Object] a new codec
        # @return [nil]
        # @raise [ArgumentError] without a block
        def register(name, &builder)
          raise ArgumentError, "give a block that builds the codec #{name}" unless builder

          @mutex.synchronize { @builders[name.to_s] = builder }
          nil
        end

        # @param name [String, Symbol]
        # @return [Object] a codec
        # @raise [ArgumentError] with the names there are
        def build(name)
          builder = @mutex.synchronize { @builders[name.to_s] }
          raise ArgumentError, "there is no codec #{name.inspect}; known are #{names.join(", ")}" unless builder

          Codec.check!(builder.call)
        end

        # @return [Array<String>]
        def names
          @mutex.synchronize { @builders.keys.sort }
        end
      end

      register("bytes") { BytesCodec.new }
      register("json") { JSONCodec.new }
      register("string") { StringCodec.new }
      register("text") { StringCodec.new }
    end
  end
end
