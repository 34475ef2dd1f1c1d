task purge_outbox: :environment do
  puts "removed #{ActiveRecordOutboxStore.new.purge_published(7 * 24 * 3600)} published rows"
end
