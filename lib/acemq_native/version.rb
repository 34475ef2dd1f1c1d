# frozen_string_literal: true

module AceMQ
  module Native
    # The version of the gem; `Cargo.toml` carries the same one.
    VERSION = "0.1.0"
  end
end
