// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device: one session at a time, which is a setup and the threads it is for. Invariant: the
 * probes are registered exactly while a session is active, and a session's threads are only added
 * until it is freed, after the last probe has returned.
 */
#include <asm/cpufeature.h>
#include <linux/capability.h>
#include <linux/compiler.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>

#include "controls.h"

#ifdef CONFIG_CFI_CLANG
#error "the probes leave out arguments of kvm_entry and kvm_exit, which differ between kernels"
#endif

#define TABLE_BITS  8
#define THREADS_MAX 4096

struct thread {
	struct hlist_node node;
	struct pid *pid; /* owned */
	struct vmtrace_vcpu vcpu;
};

struct session {
	struct vmtrace_vmx_setup setup;
	bool active;
	unsigned int nr_threads;
	DECLARE_HASHTABLE(threads, TABLE_BITS); /* by pid */
};

static DEFINE_MUTEX(lock);
static struct session *current_session; /* under lock */

extern struct tracepoint __tracepoint_kvm_entry, __tracepoint_kvm_exit;

/* ---- hooks ---- */

static struct thread *find_thread(struct session *s, struct pid *pid)
{
	struct thread *t;

	hash_for_each_possible_rcu_notrace(s->threads, t, node,
					   (unsigned long)pid) if (t->pid == pid) return t;
	return NULL;
}

static void on_entry(void *data)
{
	struct session *s = data;
	struct thread *t = find_thread(s, task_pid(current));

	if (t && READ_ONCE(s->active))
		vmtrace_controls_apply(&s->setup, &t->vcpu);
}

static void on_exit(void *data)
{
	struct session *s = data;
	struct thread *t = find_thread(s, task_pid(current));

	if (t)
		vmtrace_controls_undo(&s->setup, &t->vcpu);
}

/* ---- a session ---- */

static int hook(struct session *s)
{
	int err = tracepoint_probe_register(&__tracepoint_kvm_exit, on_exit, s);

	if (err)
		return err;
	s->active = true;
	err = tracepoint_probe_register(&__tracepoint_kvm_entry, on_entry, s);
	if (err)
		tracepoint_probe_unregister(&__tracepoint_kvm_exit, on_exit, s);
	return err;
}

/*
 * After `active` is false no entry gets the words any more. The call to every CPU ends each guest
 * that still runs with them: its kvm_exit comes before the interrupt is served.
 */
static void unhook(struct session *s)
{
	WRITE_ONCE(s->active, false);
	tracepoint_probe_unregister(&__tracepoint_kvm_entry, on_entry, s);
	tracepoint_synchronize_unregister();
	on_each_cpu(vmtrace_controls_release_cpu, NULL, 1);
	tracepoint_probe_unregister(&__tracepoint_kvm_exit, on_exit, s);
	tracepoint_synchronize_unregister();
}

static void free_session(struct session *s)
{
	struct hlist_node *next;
	struct thread *t;
	int bucket;

	hash_for_each_safe(s->threads, bucket, next, t, node)
	{
		put_pid(t->pid);
		kfree(t);
	}
	kfree(s);
}

static int setup_session(struct file *file, const void __user *argument)
{
	struct session *s;
	int err;

	if (current_session)
		return -EBUSY;
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	hash_init(s->threads);
	err = copy_from_user(&s->setup, argument, sizeof(s->setup))
		      ? -EFAULT
		      : vmtrace_controls_check(&s->setup);
	if (!err)
		err = hook(s);
	if (err) {
		tracepoint_synchronize_unregister();
		free_session(s);
		return err;
	}
	current_session = s;
	file->private_data = s;
	return 0;
}

static int add_thread(struct session *s, const void __user *argument)
{
	struct thread *t;
	u32 tid;

	if (copy_from_user(&tid, argument, sizeof(tid)))
		return -EFAULT;
	if (s->nr_threads == THREADS_MAX)
		return -ENOSPC;
	t = kzalloc(sizeof(*t), GFP_KERNEL);
	if (!t)
		return -ENOMEM;
	t->vcpu.state.tid = tid;
	t->pid = find_get_pid(tid);
	if (!t->pid || find_thread(s, t->pid)) {
		const int err = t->pid ? -EEXIST : -ESRCH;

		put_pid(t->pid);
		kfree(t);
		return err;
	}
	hash_add_rcu(s->threads, &t->node, (unsigned long)t->pid);
	s->nr_threads++;
	return 0;
}

static int read_state(struct session *s, void __user *argument)
{
	struct thread *t;
	int bucket;
	u32 tid;

	if (copy_from_user(&tid, argument, sizeof(tid)))
		return -EFAULT;
	hash_for_each(s->threads, bucket, t, node)
	{
		/* cppcheck-suppress uninitvar ; it does not know the kernel's loop */
		if (t->vcpu.state.tid == tid)
			return copy_to_user(argument, &t->vcpu.state, sizeof(t->vcpu.state))
				       ? -EFAULT
				       : 0;
	}
	return -ENOENT;
}

/* ---- the device ---- */

static int device_open(struct inode *inode, struct file *file)
{
	file->private_data = NULL; /* misc_open leaves the device there */
	return perfmon_capable() ? 0 : -EPERM;
}

static int device_release(struct inode *inode, struct file *file)
{
	struct session *s = file->private_data;

	if (!s)
		return 0;
	mutex_lock(&lock);
	unhook(s);
	current_session = NULL;
	mutex_unlock(&lock);
	free_session(s);
	return 0;
}

static long device_ioctl(struct file *file, unsigned int command, unsigned long value)
{
	void __user *argument = (void __user *)value;
	struct session *s;
	long status;

	if (mutex_lock_interruptible(&lock))
		return -EINTR;
	s = file->private_data;
	if (command == VMTRACE_VMX_SETUP)
		status = setup_session(file, argument);
	else if (!s)
		status = -EINVAL;
	else if (command == VMTRACE_VMX_ADD)
		status = add_thread(s, argument);
	else if (command == VMTRACE_VMX_READ)
		status = read_state(s, argument);
	else
		status = -ENOTTY;
	mutex_unlock(&lock);
	return status;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.unlocked_ioctl = device_ioctl,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "vmtrace_vmx",
	.fops = &operations,
	.mode = 0600,
};

static int __init vmtrace_init(void)
{
	if (!boot_cpu_has(X86_FEATURE_VMX))
		return -ENODEV;
	return misc_register(&device);
}

static void __exit vmtrace_exit(void)
{
	misc_deregister(&device);
}

module_init(vmtrace_init);
module_exit(vmtrace_exit);
MODULE_DESCRIPTION("VMX controls for Intel PT of chosen vCPUs of KVM");
MODULE_LICENSE("GPL");
