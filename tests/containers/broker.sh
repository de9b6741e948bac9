# What the start script of Kafka's own image does: KAFKA_… become properties, the log directory is formatted, Kafka runs.
set -eu
properties=/tmp/server.properties
echo "log.dirs=/tmp/kafka-logs" > "$properties"
echo "log.cleaner.dedupe.buffer.size=2097152" >> "$properties"
env | grep '^KAFKA_' | while IFS='=' read -r name value; do
  key=$(echo "${name#KAFKA_}" | tr 'A-Z_' 'a-z.')
  echo "$key=$value" >> "$properties"
done
run() { /java/bin/java -Xmx160m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '/kafka/*' "$@"; }
run kafka.tools.StorageTool format -t "$CLUSTER_ID" -c "$properties"
exec /java/bin/java -Xmx160m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '/kafka/*' kafka.Kafka "$properties"
