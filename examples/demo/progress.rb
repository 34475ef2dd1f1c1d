# frozen_string_literal: true

# One line that moves on a terminal; elsewhere a line every few seconds.
class Progress
  EVERY = 5 # seconds between two lines of a log

  def initialize(title, total = nil)
    @title = title
    @total = total
    @shown = now
  end

  def at(count)
    interval = $stdout.tty? ? 0.1 : EVERY
    return if now - @shown < interval

    @shown = now
    $stdout.tty? ? print("\r#{line(count)}") : puts(line(count))
    $stdout.flush
  end

  def done(text)
    print("\r\e[K") if $stdout.tty?
    puts "#{@title}: #{text}"
    $stdout.flush
  end

  private

  def line(count)
    "#{@title}: #{count}#{" of #{@total}" if @total} ..."
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
