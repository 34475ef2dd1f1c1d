# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

module AceMQ
  module SpecSupport
    # Rails generators of this gem, and the migrations that they write.
    module Generators
      LIB = File.expand_path("../../lib", __dir__)

      # In a process of its own, because Rails' generators load much of Rails.
      #
      # @param name [String] `install`, say
      # @param files [Hash{String => String}] that the application has
      # @return [String] the application's folder
      def generate(name, *options, files: {})
        folder = Dir.mktmpdir
        files.each do |path, text|
          FileUtils.mkdir_p(File.dirname(File.join(folder, path)))
          File.write(File.join(folder, path), text)
        end
        script = <<~RUBY
          require "generators/acemq/#{name}/#{name}_generator"
          Acemq::Generators::#{name.capitalize}Generator.start(ARGV, destination_root: #{folder.inspect}, quiet: true)
        RUBY
        output, status = Open3.capture2e(RbConfig.ruby, "-W0", "-I", LIB, "-e", script, "--", *options)
        status.success? ? folder : raise(output)
      end

      # @return [Array<Class>]
      def migrations(folder)
        Dir[File.join(folder, "db/migrate/*.rb")].sort.map do |file|
          load file
          Object.const_get(File.basename(file, ".rb").sub(/\A\d+_/, "").camelize)
        end
      end

      # @param direction [Symbol] `:up` or `:down`
      def migrate(migration, direction)
        ActiveRecord::Migration.suppress_messages { migration.migrate(direction) }
      ensure
        ActiveRecord::Base.connection_pool.release_connection
      end
    end
  end
end

RSpec.configure { |config| config.include AceMQ::SpecSupport::Generators }
