"""`tools/need-debian.sh`: another apt-get that holds a lock is waited for."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "need-debian.sh"

#: `update` finds the lock held at its first `HELD` calls; `install` knows the package after an update.
APT_GET = """#!/bin/bash
echo "$*" >> calls
case " $* " in
    *" update "*)
        [[ $(grep -c update calls) -gt $HELD ]] && exit 0
        echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)" >&2
        exit 100 ;;
    *) [[ $(grep -c update calls) -gt $HELD ]] ;;
esac
"""


@pytest.mark.parametrize(("held", "status"), [(0, 0), (3, 0), (30, 1)])
def test_a_held_lock_is_waited_for(held, status, tmp_path):
    for name, text in {"apt-get": APT_GET, "sleep": "#!/bin/sh\n", "sudo": '#!/bin/sh\nshift; exec "$@"\n'}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HELD": str(held)}
    command = [SCRIPT, "no-such-command=some-package"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert ("Waiting for another apt-get, up to 5 minutes." in done.stderr) == (held > 0)
    assert "DPkg::Lock::Timeout=300" in (tmp_path / "calls").read_text()
