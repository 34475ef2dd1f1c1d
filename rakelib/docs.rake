# frozen_string_literal: true

desc "Write the API reference to doc/, failing on a warning"
task(:docs) { sh "yard", "doc", "--fail-on-warning" }
