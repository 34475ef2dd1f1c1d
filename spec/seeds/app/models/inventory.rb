module Inventory
  class Unavailable < StandardError; end

  def self.reserve!(order)
  end
end
