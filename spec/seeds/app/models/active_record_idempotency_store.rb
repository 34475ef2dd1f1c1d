class ActiveRecordIdempotencyStore
  CLAIMED = "CLAIMED"
  CONFIRMED = "CONFIRMED"

  RETENTION = 24 * 3600

  CLAIM_TIMEOUT = 300

  def initialize(worker: "#{Socket.gethostname}:#{Process.pid}")
    @worker = worker
  end

  def first_time?(key)
    now = Time.now.utc
    HandledMessage.create!(message_id: key.to_s, state: CLAIMED, claimed_by: @worker,
                           recorded_at: now, expires_at: now + RETENTION)
    true
  rescue ActiveRecord::RecordNotUnique
    taken = HandledMessage.where(message_id: key.to_s, state: CLAIMED)
                          .where(recorded_at: ...(now - CLAIM_TIMEOUT))
                          .update_all(claimed_by: @worker, recorded_at: now,
                                      expires_at: now + RETENTION)
    taken.positive?
  end

  def confirm(key)
    HandledMessage.where(message_id: key.to_s).update_all(state: CONFIRMED)
    nil
  end

  def forget(key)
    HandledMessage.where(message_id: key.to_s, state: CLAIMED, claimed_by: @worker).delete_all
    nil
  end

  def purge_expired = HandledMessage.where(expires_at: ...Time.now.utc).delete_all
end
