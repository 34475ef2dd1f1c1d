# frozen_string_literal: true

require "json"
require "acemq/amqp"

# A process that consumes until it is killed. What it has done is a line in a file, written before it says so.
settings = JSON.parse(ENV.fetch("CHAOS"))
ack = AceMQ::AMQP::Ack
effects = File.open(settings["effects"], File::WRONLY | File::APPEND | File::CREAT)
seen = Hash.new(0)
lock = Mutex.new

# The last digit says what becomes of a message.
handler = lambda do |message|
  first = lock.synchronize { (seen[message.payload] += 1) == 1 }
  case message.payload % 10
  when 0 then next ack.reject("never")
  when 1 then raise IOError, "always"
  when 2 then next ack.retry("twice") if message.attempt <= 2
  when 3 then next ack.park("odd")
  when 4 then next ack.in_progress(0.2) if first
  end
  effects.syswrite("#{message.payload}\n")
  ack.accept
end

begin
  connection = AceMQ::AMQP::Connection.open(settings["url"], confirm_timeout: 3)
  # The first wait is the consumer's, the second the broker's.
  policy = AceMQ::AMQP::RetryPolicy.new(max_attempts: 3, initial_delay: 0.1, multiplier: 5)
  connection.consume(settings["queue"], retry_policy: policy, retry_threshold: 0.3, concurrency: 4, prefetch: 20, &handler)
rescue AceMQ::AMQP::TransportError
  connection&.close
  sleep 0.1
  retry
end
$stdin.read
exit!(0)
