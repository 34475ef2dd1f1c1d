# frozen_string_literal: true

# Runs the Ruby of one document, block by block, as its reader would: `ruby spec/docs/run.rb docs/outbox.md`.
#
# The application around it (tables, models, a broker) is world.rb; what only this document speaks of is in worlds/.
# Blocks share one binding. Example groups in them are run at the end.

require_relative "document"
require_relative "world"
require "rspec"

document = Docs::Document.new(ARGV.fetch(0))
extend RSpec::Matchers # as in an example; for the top level only
RSpec.configure { |config| config.output_stream = $stderr }

own = File.expand_path("worlds/#{document.name}.rb", __dir__)
place = TOPLEVEL_BINDING
place.eval(File.read(own), own) if File.exist?(own)
document.blocks("ruby").each { |block| place.eval(block.text, document.path, block.line) }

failed = RSpec.world.example_count.positive? && !RSpec::Core::Runner.run(["--options", File::NULL]).zero?
AceMQ::Rails.disconnect!
exit(failed ? 1 : 0)
