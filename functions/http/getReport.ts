import { z } from 'zod';
import { reportOn, reportText } from '../../shared/desk/report.ts';
import { route } from '../../shared/http/route.ts';
import { planPath } from '../../shared/http/schemas.ts';
import { planView } from '../../shared/http/views.ts';

export const getReport = route({
  name: 'getReport',
  method: 'GET',
  path: 'plans/{id}/report',
  right: 'read',
  summary: 'What became of a plan, for an incident report; `format=text` for pasting.',
  needsOperator: false,
  params: planPath,
  query: z.strictObject({ format: z.enum(['json', 'text']).default('json') }),
  handle: async (office, { params, query }) => {
    const report = await reportOn(office, params.id);
    if (query.format === 'text') return { status: 200, text: reportText(report) };
    const { head, ...rest } = report;
    return { status: 200, body: { ...planView(head), ...rest } };
  },
});
