# frozen_string_literal: true

require "tempfile"

RSpec.describe AceMQ::AMQP::Credentials do
  # What a serializer that knows nothing of the class would write.
  def variables(object)
    object.instance_variables.map { |name| object.instance_variable_get(name) }.inspect
  end

  it "shows no secret, however it is printed" do
    both = [described_class.of(username: "app", password: "hunter2"), described_class.token("hunter2")]
    shown = both.flat_map { |one| [one.inspect, one.to_s, variables(one)] }

    expect(shown.join).to include("app").and(satisfy { |text| !text.include?("hunter2") })
  end

  it "gives the secret to whoever asks for it" do
    expect(described_class.of(username: "app", password: "hunter2")).to have_attributes(username: "app", secret: "hunter2")
    expect(described_class.token("t")).to have_attributes(token?: true, secret: "t", empty?: false)
  end

  it "reads a mounted secret" do
    Tempfile.create("secret") do |file|
      file.write("hunter2\n")
      file.flush

      expect(described_class.from_file(file.path, username: "app").secret).to eq("hunter2")
    end
    expect { described_class.from_file("/nowhere") }.to raise_error(AceMQ::AMQP::ConfigurationError, /nowhere/)
  end

  it "names the variable that is not set" do
    expect { described_class.from_env(username_variable: "ACEMQ_SPEC_NOBODY") }
      .to raise_error(AceMQ::AMQP::ConfigurationError, /ACEMQ_SPEC_NOBODY/)
  end
end

RSpec.describe AceMQ::AMQP::Security do
  pem = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
  secret = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"

  it "takes PEM as text and from files" do
    Tempfile.create("ca") do |file|
      file.write(pem)
      file.flush

      expect(described_class.verified(certificate_authority: file.path).certificate_authority).to eq(pem)
      expect(described_class.verified(certificate_authority: pem).certificate_authority).to eq(pem)
    end
  end

  it "refuses what is not there, what is no PEM, and half a pair" do
    expect { described_class.verified(certificate_authority: "/nowhere.pem") }
      .to raise_error(AceMQ::AMQP::ConfigurationError, /certificate_authority cannot be read/)
    expect { described_class.verified(certificate_authority: "/dev/null") }
      .to raise_error(AceMQ::AMQP::ConfigurationError, /no PEM/)
    expect { described_class.verified(certificate: pem) }.to raise_error(AceMQ::AMQP::ConfigurationError, /without key/)
  end

  it "asks for a reason before it stops verifying" do
    expect { described_class.without_verifying_the_broker(because: " ") }
      .to raise_error(AceMQ::AMQP::ConfigurationError)
    expect(described_class.without_verifying_the_broker(because: "a laptop")).to have_attributes(verify?: false, tls?: true)
  end

  it "does not show the key" do
    shown = described_class.verified(certificate: pem, key: secret).inspect

    expect(shown).to include("client_certificate").and(satisfy { |text| !text.include?("c2VjcmV0") })
  end
end
