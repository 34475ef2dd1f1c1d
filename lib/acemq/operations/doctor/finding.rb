# frozen_string_literal: true

module AceMQ
  module Operations
    class Doctor
      # One thing that was looked at.
      #
      # @!attribute subject [String] what
      # @!attribute verdict [Symbol] :ok, :warning or :error
      # @!attribute text    [String] how it is
      # @!attribute remedy  [String, nil] what to do about it
      Finding = Struct.new(:subject, :verdict, :text, :remedy, keyword_init: true) do
        def self.ok(subject, text)
          new(subject: subject, verdict: :ok, text: text)
        end

        def self.warning(subject, text, remedy)
          new(subject: subject, verdict: :warning, text: text, remedy: remedy)
        end

        def self.error(subject, text, remedy)
          new(subject: subject, verdict: :error, text: text, remedy: remedy)
        end

        def error?
          verdict == :error
        end

        def warning?
          verdict == :warning
        end
      end
    end
  end
end
