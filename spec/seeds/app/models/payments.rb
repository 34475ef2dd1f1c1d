module Payments
  def self.charge!(order_id, amount_cents)
  end
end
