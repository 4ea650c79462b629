import { health as report } from '../../shared/desk/sources.ts';
import { none, route } from '../../shared/http/route.ts';
import { iso } from '../../shared/timeText.ts';

export const health = route({
  name: 'health',
  method: 'GET',
  path: 'health',
  right: 'probe',
  summary: 'Healthy, Degraded or Unhealthy. Dead letters alone are never Unhealthy.',
  needsOperator: false,
  params: none,
  query: none,
  handle: async (office) => {
    const { asOf, ...told } = await report(office);
    return { status: told.status === 'Unhealthy' ? 503 : 200, body: { ...told, asOf: iso(asOf) } };
  },
});
