/**
 * Where the package begins. It is small and in the language of every Node.js that Azure has, because what stands in the other files
 * may not be known to an old one, and a file may be missing: `/health` must say so even then.
 */
const log = (line) => console.log(line);

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  require('./unhealthy.js').registerTooOld(process.versions.node, OLDEST_NODE, log);
} else {
  try {
    require('./start.js');
  } catch (error) {
    require('./unhealthy.js').registerUnhealthy(error, log);
  }
}
