# frozen_string_literal: true

module AceMQ
  module CLI
    module Text
      # Findings, one a line, with the remedy below those that need one.
      class Doctor
        SIGNS = { ok: "ok  ", warning: "WARN", error: "FAIL" }.freeze

        # @param findings [Array<Operations::Doctor::Finding>]
        def initialize(findings)
          @findings = findings
        end

        # @return [String]
        def to_s
          [*@findings.flat_map { |finding| lines(finding) }, "", summary].join("\n")
        end

        private

        def lines(finding)
          ["#{SIGNS.fetch(finding.verdict)}  #{finding.subject}: #{finding.text}",
           *(["        -> #{finding.remedy}"] if finding.remedy)]
        end

        def summary
          errors = @findings.count(&:error?)
          warnings = @findings.count(&:warning?)
          return "nothing to do" if errors.zero? && warnings.zero?

          "#{errors} to mend, #{warnings} to look at"
        end
      end
    end
  end
end
