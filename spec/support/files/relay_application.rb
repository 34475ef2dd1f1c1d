# frozen_string_literal: true

# An application without Rails, for `acemq relay`: a database, and where the broker is.
require "active_record"
require "json"
require "acemq_native"
require "acemq/rails"

ActiveRecord::Base.establish_connection(JSON.parse(ENV.fetch("ACEMQ_SPEC_DATABASE")))
AceMQ::Rails.config.url = ENV.fetch("ACEMQ_SPEC_URL")
AceMQ::Rails.config.connect_timeout = 3
