# frozen_string_literal: true

require "fileutils"
require "openssl"

module AceMQ
  module TestServers
    # A private authority and the certificates it signs, as PEM files in a folder.
    #
    #   authority = Certificates.new(folder)
    #   server = authority.issue("broker.test", names: %w[DNS:broker.test DNS:localhost IP:127.0.0.1])
    #   server.certificate  # => path
    class Certificates
      DAY = 86_400 # seconds
      Pair = Struct.new(:certificate, :key, keyword_init: true)

      # @return [String] path of the authority's own certificate
      attr_reader :authority

      def initialize(folder, name: "acemq test authority")
        @folder = folder
        FileUtils.mkdir_p(folder)
        @key = OpenSSL::PKey::RSA.new(2048)
        @certificate = self_signed(name, @key)
        @authority = write("#{name.tr(" ", "-")}.pem", @certificate)
      end

      # @param names [Array<String>] subject alternative names, "DNS:..." or "IP:..."
      # @param expired [Boolean] its time ran out yesterday
      # @param signed_by_itself [Boolean] instead of by the authority
      # @return [Pair] of paths
      def issue(name, names: ["DNS:#{name}"], expired: false, signed_by_itself: false)
        key = OpenSSL::PKey::RSA.new(2048)
        certificate = blank(name, key, expired: expired)
        issuer, issuer_key = signed_by_itself ? [certificate, key] : [@certificate, @key]
        certificate.issuer = issuer.subject
        extend_with(certificate, issuer, "basicConstraints" => "CA:FALSE", "subjectAltName" => names.join(","),
                                         "extendedKeyUsage" => "serverAuth,clientAuth")
        certificate.sign(issuer_key, "SHA256")
        Pair.new(certificate: write("#{name}-#{certificate.serial}.pem", certificate),
                 key: write("#{name}-#{certificate.serial}.key", key))
      end

      private

      def self_signed(name, key)
        certificate = blank(name, key)
        certificate.issuer = certificate.subject
        extend_with(certificate, certificate, "basicConstraints!" => "CA:TRUE", "keyUsage!" => "keyCertSign,cRLSign",
                                              "subjectKeyIdentifier" => "hash")
        certificate.sign(key, "SHA256")
      end

      def blank(name, key, expired: false)
        OpenSSL::X509::Certificate.new.tap do |certificate|
          certificate.version = 2
          certificate.serial = @serial = (@serial || 0) + 1
          certificate.subject = OpenSSL::X509::Name.new([["CN", name]])
          certificate.public_key = key.public_key
          certificate.not_before = Time.now - (10 * DAY)
          certificate.not_after = Time.now + (expired ? -DAY : 10 * DAY)
        end
      end

      def extend_with(certificate, issuer, extensions)
        factory = OpenSSL::X509::ExtensionFactory.new(issuer, certificate)
        extensions.each do |name, value|
          certificate.add_extension(factory.create_extension(name.delete("!"), value, name.end_with?("!")))
        end
      end

      def write(name, pem)
        File.join(@folder, name).tap { |path| File.write(path, pem.to_pem) }
      end
    end
  end
end
