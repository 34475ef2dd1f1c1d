# frozen_string_literal: true

# AMQP without Rails and without ActiveRecord. `AceMQ::AMQP::Patterns` is a
# separate require, "acemq/amqp/patterns".
require_relative "amqp/errors"

module AceMQ
  autoload :Native, File.expand_path("native", __dir__)
end
