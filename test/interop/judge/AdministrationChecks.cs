using Azure.Messaging.ServiceBus;
using Azure.Messaging.ServiceBus.Administration;

namespace Judge;

public static class AdministrationChecks
{
    public static async Task Run(Report report, Bench bench)
    {
        await report.Check("a queue is created, read, changed and deleted", () => Queue(bench));
        await report.Check("topics, subscriptions and rules are created, listed and deleted", () => Topic(bench));
        await report.Check("runtime properties count what is there", () => Counts(bench));
        await report.Check("lists go through all pages", () => Lists(bench));
        await report.Check("the namespace tells about itself", () => Namespace(bench));
        await report.Check("what is taken or missing is said to be", () => Refusals(bench));
    }

    private static async Task Queue(Bench bench)
    {
        var admin = bench.Administration;
        QueueProperties created = await admin.CreateQueueAsync(new CreateQueueOptions("made")
        {
            LockDuration = TimeSpan.FromSeconds(45),
            MaxDeliveryCount = 4,
            RequiresSession = false,
            DeadLetteringOnMessageExpiration = true,
            DefaultMessageTimeToLive = TimeSpan.FromHours(2),
            ForwardDeadLetteredMessagesTo = "forwarded",
            UserMetadata = "made <by> the judge",
        });
        Expect.Equal("made", created.Name, "name");
        Expect.Equal(TimeSpan.FromSeconds(45), created.LockDuration, "lock duration");
        Expect.Equal(4, created.MaxDeliveryCount, "deliveries");
        Expect.Equal(true, created.DeadLetteringOnMessageExpiration, "dead-lettering");
        Expect.Equal(TimeSpan.FromHours(2), created.DefaultMessageTimeToLive, "time to live");
        Expect.Equal("made <by> the judge", created.UserMetadata, "metadata");
        Expect.True(created.ForwardDeadLetteredMessagesTo.EndsWith("/forwarded"), "target of dead letters");
        created.LockDuration = TimeSpan.FromSeconds(30);
        created.Status = EntityStatus.SendDisabled;
        QueueProperties changed = await admin.UpdateQueueAsync(created);
        Expect.Equal(TimeSpan.FromSeconds(30), changed.LockDuration, "changed lock duration");
        Expect.Equal(EntityStatus.SendDisabled, changed.Status, "changed status");
        var exception = await Expect.Throws<ServiceBusException>(() => bench.Send("made", Bench.Message("x")), "sending while disabled");
        Expect.Equal(ServiceBusFailureReason.MessagingEntityDisabled, exception.Reason, "reason");
        Expect.True(await admin.QueueExistsAsync("made"), "it is there");
        await admin.DeleteQueueAsync("made");
        Expect.True(!await admin.QueueExistsAsync("made"), "it is gone");
    }

    private static async Task Topic(Bench bench)
    {
        var admin = bench.Administration;
        await admin.CreateTopicAsync("made-topic");
        await admin.CreateSubscriptionAsync("made-topic", "plain");
        var rule = new CreateRuleOptions("first", new CorrelationRuleFilter { Subject = "s", ApplicationProperties = { ["n"] = 5, ["at"] = new DateTime(2026, 1, 2, 3, 4, 5, DateTimeKind.Utc) } });
        SubscriptionProperties subscription = await admin.CreateSubscriptionAsync(new CreateSubscriptionOptions("made-topic", "ruled") { MaxDeliveryCount = 2 }, rule);
        Expect.Equal(2, subscription.MaxDeliveryCount, "deliveries");
        RuleProperties read = await admin.GetRuleAsync("made-topic", "ruled", "first");
        Expect.Equal(rule.Filter, read.Filter, "filter");
        await admin.CreateRuleAsync("made-topic", "ruled", new CreateRuleOptions("sql", new SqlRuleFilter("a < 'b'")));
        var rules = new List<string>();
        await foreach (var each in admin.GetRulesAsync("made-topic", "ruled")) rules.Add(each.Name);
        Expect.Sequence(["first", "sql"], rules, "rules");
        var subscriptions = new List<string>();
        await foreach (var each in admin.GetSubscriptionsAsync("made-topic")) subscriptions.Add(each.SubscriptionName);
        Expect.Sequence(["plain", "ruled"], subscriptions, "subscriptions");
        Expect.Equal(2, (await admin.GetTopicRuntimePropertiesAsync("made-topic")).Value.SubscriptionCount, "subscription count");
        await admin.DeleteRuleAsync("made-topic", "ruled", "sql");
        await admin.DeleteSubscriptionAsync("made-topic", "plain");
        await admin.DeleteTopicAsync("made-topic");
        Expect.True(!await admin.SubscriptionExistsAsync("made-topic", "ruled"), "it is gone");
    }

    private static async Task Counts(Bench bench)
    {
        await bench.Send("counting", [.. Enumerable.Range(0, 5).Select(i => Bench.Message($"{i}"))]);
        await using var sender = bench.Client.CreateSender("counting");
        await sender.ScheduleMessageAsync(Bench.Message("later"), DateTimeOffset.UtcNow.AddMinutes(10));
        await using var receiver = bench.Client.CreateReceiver("counting");
        var messages = await Bench.Take(receiver, 2);
        await receiver.DeferMessageAsync(messages[0]);
        await receiver.DeadLetterMessageAsync(messages[1]);
        QueueRuntimeProperties counts = await bench.Administration.GetQueueRuntimePropertiesAsync("counting");
        Expect.Equal(4, counts.ActiveMessageCount, "active");
        Expect.Equal(1, counts.DeadLetterMessageCount, "dead letters");
        Expect.Equal(1, counts.ScheduledMessageCount, "scheduled");
        Expect.Equal(0, counts.TransferMessageCount, "in transfer");
        Expect.Equal(6, counts.TotalMessageCount, "all");
        Expect.True(counts.SizeInBytes > 0, "size");
    }

    private static async Task Lists(Bench bench)
    {
        for (var i = 0; i < 120; i++) await bench.Administration.CreateQueueAsync($"page-{i:000}");
        var names = new List<string>();
        await foreach (var queue in bench.Administration.GetQueuesAsync()) names.Add(queue.Name);
        Expect.Equal(120, names.Count(name => name.StartsWith("page-")), "queues");
        Expect.Equal(names.Count, names.Distinct().Count(), "different names");
        for (var i = 0; i < 120; i++) await bench.Administration.DeleteQueueAsync($"page-{i:000}");
    }

    private static async Task Namespace(Bench bench)
    {
        NamespaceProperties properties = await bench.Administration.GetNamespacePropertiesAsync();
        Expect.Equal("sbemulatorns", properties.Name, "name");
        Expect.Equal(MessagingSku.Standard, properties.MessagingSku, "tier");
    }

    private static async Task Refusals(Bench bench)
    {
        var admin = bench.Administration;
        var taken = await Expect.Throws<ServiceBusException>(() => admin.CreateQueueAsync("counting"), "a name that is taken");
        Expect.Equal(ServiceBusFailureReason.MessagingEntityAlreadyExists, taken.Reason, "reason");
        var missing = await Expect.Throws<ServiceBusException>(() => admin.GetQueueAsync("nowhere"), "no such queue");
        Expect.Equal(ServiceBusFailureReason.MessagingEntityNotFound, missing.Reason, "reason");
        var filter = new CreateRuleOptions("bad", new SqlRuleFilter("color ="));
        await Expect.Throws<ArgumentException>(() => admin.CreateRuleAsync("topic", "all", filter), "no filter");
    }
}
