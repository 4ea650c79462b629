// The official .NET client as a judge of the local broker and of what the office sends back.
//
//   judge checks <connection string> <administration connection string> <listen-only connection string>
//   judge send <connection string> <queue>          sends one message with every property type
//   judge dead-letter <connection string> <queue>   receives it and dead-letters it, as a consumer would
//   judge consume <connection string> <queue>       receives one message and casts every property to the type it was sent as
//   judge record <connection string> <queue> <count> <file>    notes what it decodes of so many messages, and dead-letters them
//   judge compare <connection string> <queue> <count> <file>   compares what it decodes of their copies with what it noted
//
// Prints one line a check and the number of each kind last; ends with 0 when nothing failed, 2 when it was misused.
using Judge;

var report = new Report();
switch (args)
{
    case ["checks", var connection, var administration, var listenOnly]:
        await using (var bench = new Bench(connection, administration, listenOnly))
        {
            await SendingChecks.Run(report, bench);
            await ReceivingChecks.Run(report, bench);
            await SettlingChecks.Run(report, bench);
            await DeadLetterChecks.Run(report, bench);
            await PeekingChecks.Run(report, bench);
            await SessionChecks.Run(report, bench);
            await TopicChecks.Run(report, bench);
            await AdministrationChecks.Run(report, bench);
            await AccessChecks.Run(report, bench);
        }
        break;
    case ["send", var connection, var queue]:
        await Letter.Send(report, connection, queue);
        break;
    case ["dead-letter", var connection, var queue]:
        await Letter.DeadLetter(report, connection, queue);
        break;
    case ["consume", var connection, var queue]:
        await Letter.Consume(report, connection, queue);
        break;
    case ["record", var connection, var queue, var count, var file]:
        await Matrix.Record(report, connection, queue, int.Parse(count), file);
        break;
    case ["compare", var connection, var queue, var count, var file]:
        await Matrix.Compare(report, connection, queue, int.Parse(count), file);
        break;
    default:
        Console.Error.WriteLine("usage: judge checks <connection> <administration> <listen-only> | judge send|dead-letter|consume <connection> <queue> | judge record|compare <connection> <queue> <count> <file>");
        return 2;
}
return report.Finish();
