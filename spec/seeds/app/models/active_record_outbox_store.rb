class ActiveRecordOutboxStore
  LEASE = 60

  MAX_ATTEMPTS = 10

  def add(record)
    body, encoding = encode(record.body)
    OutboxMessage.create!(
      id: record.id, exchange_name: record.exchange.to_s,
      routing_key: record.routing_key.to_s, body: body, body_encoding: encoding,
      content_type: record.content_type.to_s,
      headers: JSON.generate(record.headers || {}),
      created_at: record.created_at || Time.now.utc, attempts: 0
    )
    nil
  rescue ActiveRecord::RecordNotUnique
    nil
  end

  def pending(limit = 0)
    token = SecureRandom.uuid
    now = Time.now.utc
    limit = limit.to_i.positive? ? [limit.to_i, 1_000].min : 1_000

    claimable = free(now).order(:created_at, :id).limit(limit)
    free(now).where(id: claimable.pluck(:id))
             .update_all(locked_by: token, locked_until: now + LEASE)

    OutboxMessage.where(locked_by: token, published_at: nil)
                 .order(:created_at, :id).map { |row| to_record(row) }
  end

  def mark_published(id)
    OutboxMessage.where(id: id)
                 .update_all(published_at: Time.now.utc, locked_by: nil, locked_until: nil)
    nil
  end

  def mark_failed(id, reason)
    OutboxMessage.update_counters(id, attempts: 1)
    OutboxMessage.where(id: id).update_all(last_error: reason.to_s[0, 1_000],
                                           locked_by: nil, locked_until: nil)
    nil
  rescue StandardError
    nil
  end

  def pending_count = OutboxMessage.where(published_at: nil).count

  def purge_published(older_than)
    OutboxMessage.where.not(published_at: nil)
                 .where(published_at: ...(Time.now.utc - older_than)).delete_all
  end

  private

  def free(now)
    OutboxMessage.where(published_at: nil)
                 .where(attempts: ...MAX_ATTEMPTS)
                 .where("locked_until IS NULL OR locked_until < ?", now)
  end

  def to_record(row)
    AceMQ::AMQP::Patterns::OutboxRecord.new(
      id: row.id, exchange: row.exchange_name, routing_key: row.routing_key,
      body: decode(row.body, row.body_encoding), content_type: row.content_type,
      headers: JSON.parse(row.headers), created_at: row.created_at
    )
  end

  def encode(body)
    text = body.to_s.dup.force_encoding(Encoding::UTF_8)
    text.valid_encoding? ? [text, "utf-8"] : [[body.to_s].pack("m0"), "base64"]
  end

  def decode(body, encoding) = encoding == "base64" ? body.to_s.unpack1("m0") : body.to_s
end
