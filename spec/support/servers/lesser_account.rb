# frozen_string_literal: true

require "tmpdir"

module AceMQ
  module TestServers
    # For servers that refuse to run as root: root runs them as the user that Debian's packages of PostgreSQL bring.
    module LesserAccount
      NAME = "postgres"

      private

      def as_account
        root? ? ["setpriv", "--reuid=#{NAME}", "--regid=#{NAME}", "--init-groups"] : []
      end

      def give_folder_to_account
        FileUtils.chown(NAME, NAME, folder) if root?
      end

      # A checkout below /root is closed to that account.
      def data_root
        return Server::ROOT unless root?

        parts = Server::ROOT.split("/")
        closed = parts.each_index.map { |depth| parts[0..depth].join("/") }
                      .any? { |path| File.directory?(path) && File.stat(path).mode.nobits?(0o001) }
        closed ? File.join(Dir.tmpdir, "acemq-servers") : Server::ROOT
      end
    end
  end
end
