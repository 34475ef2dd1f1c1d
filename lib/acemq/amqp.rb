# frozen_string_literal: true

# AMQP without Rails and without ActiveRecord. `AceMQ::AMQP::Patterns` is a
# separate require, "acemq/amqp/patterns".
require_relative "amqp/replaced_gems"
require_relative "amqp/errors"
begin
  require_relative "native"
rescue LoadError => e
  warn e.message
end
require_relative "amqp/short_string"
require_relative "amqp/headers"
require_relative "amqp/envelope"
require_relative "amqp/message"
require_relative "amqp/delivery"
require_relative "amqp/ack"
require_relative "amqp/retry_policy"
require_relative "amqp/codec"
require_relative "amqp/json_codec"
require_relative "amqp/bytes_codec"
require_relative "amqp/string_codec"
require_relative "amqp/composite_codec"
require_relative "amqp/codecs"
require_relative "amqp/credentials"
require_relative "amqp/security"
require_relative "amqp/queue_type"
require_relative "amqp/connection"

module AceMQ
  module AMQP
    autoload :Transport, File.expand_path("amqp/transport", __dir__)
  end
end
