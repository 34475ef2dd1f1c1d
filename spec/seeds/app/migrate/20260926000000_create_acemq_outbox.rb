class CreateAcemqOutbox < ActiveRecord::Migration[7.1]
  def change
    create_table :acemq_outbox, id: :string, limit: 64 do |t|
      t.string   :exchange_name, null: false, limit: 255
      t.string   :routing_key,   null: false, limit: 255
      t.text     :body,          null: false
      t.string   :body_encoding, null: false, limit: 16
      t.string   :content_type,  null: false, limit: 255
      t.text     :headers,       null: false
      t.datetime :created_at,    null: false
      t.datetime :published_at
      t.integer  :attempts,      null: false, default: 0
      t.string   :last_error,    limit: 1000
      t.string   :locked_by,     limit: 64
      t.datetime :locked_until
    end

    add_index :acemq_outbox, %i[published_at created_at], name: "acemq_outbox_pending"
  end
end
