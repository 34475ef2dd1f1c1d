class FakeTransport
  Published = Struct.new(:exchange, :routing_key, :body, :content_type, :message_id, :headers, keyword_init: true)

  attr_reader :published

  def initialize
    @published = []
    @failures = {}
  end

  def fail_on(routing_key, error)
    @failures[routing_key] = error
  end

  def recover(routing_key)
    @failures.delete(routing_key)
  end

  def publish(exchange:, routing_key:, body:, content_type: nil, message_id: nil, headers: {}, persistent: true)
    raise @failures[routing_key] if @failures.key?(routing_key)

    @published << Published.new(exchange: exchange, routing_key: routing_key, body: body,
                                content_type: content_type, message_id: message_id, headers: headers)
    message_id
  end

  def open? = true

  def close = nil
end
