# frozen_string_literal: true

require "active_record"

# The outbox table as an operator would look at it.
class OutboxView < ActiveRecord::Base
  self.table_name = "acemq_outbox"

  def self.published
    where.not(published_at: nil)
  end

  def self.leased
    where(published_at: nil).where.not(locked_by: nil)
  end

  def self.unpublished
    where(published_at: nil)
  end
end
