# frozen_string_literal: true

require "rbconfig"

# A relay as the operating system sees it: started, frozen, killed, ended.
class RelayProcess
  SCRIPT = File.expand_path("relay.rb", __dir__)

  attr_reader :pid

  def initialize(places)
    stdin, @lifeline = IO.pipe
    @pid = spawn(places.environment, RbConfig.ruby, "-I", File.expand_path("../../lib", __dir__), SCRIPT, in: stdin)
    stdin.close
  end

  # Stopped while the block looks, then killed if the block says so, else going on.
  # @return [Boolean] whether it was killed
  def kill_if
    Process.kill("STOP", pid)
    killed = yield
    killed ? kill : Process.kill("CONT", pid)
    killed
  end

  def kill
    Process.kill("KILL", pid)
    finish
  end

  # @return [Process::Status]
  def stop
    Process.kill("TERM", pid)
    finish
  end

  def running?
    @status.nil? && Process.wait(pid, Process::WNOHANG).nil?
  end

  private

  def finish
    _, @status = Process.wait2(pid)
    @lifeline.close
    @status
  end
end
