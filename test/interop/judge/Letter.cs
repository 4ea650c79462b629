using Azure.Messaging.ServiceBus;

namespace Judge;

/// <summary>One message on its way: sent, dead-lettered, sent back by the office, consumed.</summary>
public static class Letter
{
    private static readonly byte[] Body = [.. Enumerable.Range(0, 256).Select(value => (byte)value)];

    public static async Task Send(Report report, string connection, string queue)
    {
        await using var client = new ServiceBusClient(connection);
        await report.Check("a message with every property type is sent", async () =>
        {
            var message = new ServiceBusMessage(Body)
            {
                MessageId = "letter-1",
                CorrelationId = "correlation-1",
                Subject = "OrderPlaced",
                ContentType = "application/octet-stream",
                To = "somewhere",
                ReplyTo = "answers",
                ReplyToSessionId = "answer-session",
                PartitionKey = "key",
                TimeToLive = TimeSpan.FromMinutes(30),
            };
            EveryType.AddTo(message.ApplicationProperties);
            var raw = message.GetRawAmqpMessage();
            raw.Header.Priority = 7;
            raw.Properties.ContentEncoding = "gzip";
            raw.Properties.UserId = new byte[] { 1, 2, 3 };
            raw.Footer["x-footer"] = 5;
            raw.MessageAnnotations["x-opt-jms-msg-type"] = (sbyte)5;
            await client.CreateSender(queue).SendMessageAsync(message);
        });
    }

    public static async Task DeadLetter(Report report, string connection, string queue)
    {
        await using var client = new ServiceBusClient(connection);
        await report.Check("a consumer dead-letters it", async () =>
        {
            await using var receiver = client.CreateReceiver(queue);
            var message = await Bench.Take(receiver);
            await receiver.DeadLetterMessageAsync(message, "Unprocessable", "no such customer");
        });
    }

    public static async Task Consume(Report report, string connection, string queue)
    {
        await using var client = new ServiceBusClient(connection);
        await using var receiver = client.CreateReceiver(queue);
        ServiceBusReceivedMessage? received = null;
        await report.Check("the letter comes back", async () => received = await Bench.Take(receiver));
        if (received is not { } message) return;
        foreach (var name in EveryType.Values.Keys)
        {
            await report.Check($"property {name} is cast to {EveryType.Values[name].GetType().Name}", () =>
            {
                EveryType.Cast(name, message.ApplicationProperties.GetValueOrDefault(name));
                return Task.CompletedTask;
            });
        }
        await report.Check("the body has the same bytes", () =>
        {
            Expect.Sequence(Body, message.Body.ToArray(), "body");
            return Task.CompletedTask;
        });
        await report.Check("the message is the one that was sent", () => Same(message));
        await report.Check("it carries the office's own properties and no reasons of its death", () => Marked(message));
        await report.Check("it can be completed", () => receiver.CompleteMessageAsync(message));
    }

    private static Task Same(ServiceBusReceivedMessage message)
    {
        Expect.Equal("letter-1", message.MessageId, "message id");
        Expect.Equal("correlation-1", message.CorrelationId, "correlation id");
        Expect.Equal("OrderPlaced", message.Subject, "subject");
        Expect.Equal("application/octet-stream", message.ContentType, "content type");
        Expect.Equal("somewhere", message.To, "to");
        Expect.Equal("answers", message.ReplyTo, "reply to");
        Expect.Equal("answer-session", message.ReplyToSessionId, "reply to session id");
        Expect.Equal("key", message.PartitionKey, "partition key");
        Expect.Equal(TimeSpan.FromMinutes(30), message.TimeToLive, "time to live");
        Expect.Equal(1, message.DeliveryCount, "delivery count");
        var raw = message.GetRawAmqpMessage();
        Expect.Equal<byte?>(7, raw.Header.Priority, "priority");
        Expect.Equal("gzip", raw.Properties.ContentEncoding, "content encoding");
        Expect.Sequence<byte>([1, 2, 3], raw.Properties.UserId!.Value.ToArray(), "user id");
        Expect.Equal(5, (int)raw.Footer["x-footer"]!, "footer");
        Expect.Equal((sbyte)5, (sbyte)raw.MessageAnnotations["x-opt-jms-msg-type"]!, "annotation of a stranger");
        return Task.CompletedTask;
    }

    private static Task Marked(ServiceBusReceivedMessage message)
    {
        var properties = message.ApplicationProperties;
        Expect.Equal(1, (int)properties["x-replay-count"], "x-replay-count");
        Expect.True((long)properties["x-replayed-at"] > 1_700_000_000, "x-replayed-at is in unix seconds");
        Expect.True(((string)properties["x-replay-id"]).Length > 0, "x-replay-id");
        Expect.True(long.TryParse((string)properties["x-replay-of"], out _), "x-replay-of");
        Expect.True(message.DeadLetterReason == null && message.DeadLetterErrorDescription == null, "no reason is left");
        return Task.CompletedTask;
    }
}
