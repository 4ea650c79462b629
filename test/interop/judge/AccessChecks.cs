namespace Judge;

public static class AccessChecks
{
    public static async Task Run(Report report, Bench bench)
    {
        await report.Check("a key that may listen receives and does not send", async () =>
        {
            await bench.Send("access", Bench.Message("x"));
            await using var receiver = bench.ListenOnly.CreateReceiver("access");
            await receiver.CompleteMessageAsync(await Bench.Take(receiver));
            await using var sender = bench.ListenOnly.CreateSender("access");
            await Expect.Throws<UnauthorizedAccessException>(() => sender.SendMessageAsync(Bench.Message("x")), "sending");
        });
    }
}
